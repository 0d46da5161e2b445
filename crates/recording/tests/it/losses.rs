//! Pages that the kernel lost from the middle of recorded runs of each kind. Stalls that touch the loss get only that
//! verdict, stalls before it are reported as they were, and unobserved time is not reported. `replay.rs` has the same
//! test for losses while recording.

use jitterscope_model::{Attribution, CpuId, Evidence, RunManifest, Stall, Ticks, TraceRole};
use jitterscope_recording::{Replayed, replay};
use jitterscope_source::TraceContext;
use jitterscope_store::{RunReader, RunWriter, StoredPage, TracePiece};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn fixture(kind: &str) -> RunReader {
    RunReader::open(
        &Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(kind),
    )
    .unwrap()
}

/// The flag in a page's commit field that the ring buffer sets if events were lost before it.
const COMMIT_LOST: u8 = 1 << 7;
/// The position of that byte: after the time stamp, the highest byte of the field's low word.
const COMMIT_TOP: usize = 8 + 3;

/// A page of a CPU that the kernel's buffer lost: the oldest of a turn, because other pages followed it.
struct Loss {
    cpu: CpuId,
    page: usize,
    /// Times of the last record before it and of the first one after it, as a reader of the pages knows them.
    from: Ticks,
    to: Ticks,
    /// Times of its first and last record.
    first: Ticks,
    last: Ticks,
}

impl Loss {
    /// Whether records between these times were lost.
    fn takes_from(&self, start: Ticks, end: Ticks) -> bool {
        self.first <= end && start <= self.last
    }

    /// Whether records between these times may have been lost.
    fn may_touch(&self, start: Ticks, end: Ticks) -> bool {
        self.from <= end && start <= self.to
    }
}

/// All pages that can be lost, each alone: a page of the same CPU precedes it, and one follows it in its turn.
fn losses(run: &RunReader) -> Vec<Loss> {
    let (mut found, mut turn) = (Vec::new(), 0);
    // Per CPU: the last page, its turn and position, and the time of the last record before it.
    let mut last: BTreeMap<CpuId, (StoredPage, u64, usize, Option<Ticks>)> = BTreeMap::new();
    let mut pages = 0;
    for piece in run.trace_pieces().unwrap() {
        match piece.unwrap() {
            TracePiece::Page(page) => {
                pages += 1;
                if page.role != TraceRole::Local {
                    continue;
                }
                let before = last.get(&page.cpu).map(|(before, ..)| before.last);
                let known = last.insert(page.cpu, (page.clone(), turn, pages - 1, before));
                if let Some((lost, of, at, Some(from))) = known.filter(|(_, of, ..)| *of == turn) {
                    let (first, last) = (lost.first, lost.last);
                    found.push(Loss {
                        cpu: lost.cpu,
                        page: at,
                        from,
                        to: page.first,
                        first,
                        last,
                    });
                    assert_eq!(of, turn);
                }
            }
            TracePiece::Turn(_) => turn += 1,
            TracePiece::Missing => panic!("the fixture is whole"),
        }
    }
    found
}

/// The run as if the kernel had lost that page.
fn without(run: &RunReader, loss: &Loss, folder: &Path) -> RunReader {
    let manifest: RunManifest = run.manifest().clone();
    let mut writer = RunWriter::create(folder, "LOST", manifest.clock_start.realtime_ns).unwrap();
    writer.limit_trace(u64::MAX);
    writer.begin(manifest.clock_start, manifest.rate).unwrap();
    let (mut number, mut marked) = (0, false);
    for piece in run.trace_pieces().unwrap() {
        match piece.unwrap() {
            TracePiece::Page(mut page) => {
                number += 1;
                if number - 1 == loss.page {
                    continue;
                }
                let next =
                    number > loss.page && page.role == TraceRole::Local && page.cpu == loss.cpu;
                if next && !std::mem::replace(&mut marked, true) {
                    page.bytes[COMMIT_TOP] |= COMMIT_LOST;
                }
                writer
                    .trace_page(page.role, page.cpu, page.first, page.last, &page.bytes)
                    .unwrap();
            }
            TracePiece::Turn(turn) => writer.drain_turn(&turn).unwrap(),
            TracePiece::Missing => panic!("the fixture is whole"),
        }
    }
    assert!(marked);
    let context: TraceContext = run.trace_context().unwrap().unwrap();
    writer
        .trace_context(&serde_json::to_vec(&context).unwrap())
        .unwrap();
    for stall in run.stalls().unwrap().map(Result::unwrap) {
        writer.stall(&stall).unwrap();
    }
    let path: PathBuf = writer.finish(manifest).unwrap();
    RunReader::open(&path).unwrap()
}

type Rows = Vec<(Stall, Attribution)>;

fn replayed(run: &RunReader) -> (Rows, Replayed) {
    let mut rows = Rows::new();
    let replayed = replay(run, &mut |stall, attribution| {
        rows.push((*stall, attribution.expect("all of the trace is there")));
    });
    (rows, replayed.unwrap())
}

fn is_lost(attribution: &Attribution) -> bool {
    attribution
        .parts
        .iter()
        .all(|part| part.evidence == Evidence::LostRecords)
}

/// Checks each loss alone with what the run reports; returns how many stalls the losses touched.
fn each_loss(kind: &str, mut check: impl FnMut(&Loss, &Rows, &Rows, &Replayed) -> usize) -> usize {
    let run = fixture(kind);
    let (whole, _) = replayed(&run);
    let all = losses(&run);
    assert!(!all.is_empty(), "{kind}: no page lies between others");
    let mut touched = 0;
    for loss in &all {
        let folder = tempfile::tempdir().unwrap();
        let (rows, replayed) = replayed(&without(&run, loss, folder.path()));
        for (stall, attribution) in &rows {
            assert_eq!(
                attribution.total(),
                run.manifest().rate.nanos(stall.length()),
                "{kind} {stall:?}"
            );
        }
        touched += check(loss, &whole, &rows, &replayed);
    }
    println!("{kind}: {} losses, {touched} stalls", all.len());
    touched
}

/// The stalls of probes stay as measured, whatever was recorded.
fn stalls_of_probes(kind: &str) -> usize {
    each_loss(kind, |loss, whole, rows, _| {
        let mut touched = 0;
        assert_eq!(whole.len(), rows.len());
        for ((stall, before), (_, now)) in whole.iter().zip(rows) {
            if stall.cpu == loss.cpu && loss.takes_from(stall.start, stall.end) {
                assert!(
                    is_lost(now),
                    "{kind}: {stall:?} touches {}-{}: {now:?}",
                    loss.from.0,
                    loss.to.0
                );
                touched += 1;
            } else if stall.end < loss.from {
                assert_eq!(before, now, "{kind}: {stall:?}");
            } else {
                let lost = now
                    .parts
                    .iter()
                    .any(|part| part.evidence == Evidence::LostRecords);
                let may = stall.cpu == loss.cpu && loss.may_touch(stall.start, stall.end);
                assert!(
                    !lost || may,
                    "{kind}: {stall:?} is away from {}-{}: {now:?}",
                    loss.from.0,
                    loss.to.0
                );
            }
        }
        touched
    })
}

#[test]
fn a_stall_that_a_loss_touches_gets_no_verdict_and_no_other_one_changes() {
    assert!(stalls_of_probes("spin") > 10);
}

#[test]
fn nor_does_a_late_wake_up() {
    assert!(stalls_of_probes("wakeup") > 10);
}

#[test]
fn nothing_is_reported_of_a_wait_where_its_cpus_records_were_lost() {
    let sums = |replayed: &Replayed| {
        let threads = replayed.threads.as_deref().unwrap();
        let unknown: u64 = threads.iter().map(|thread| thread.unknown_ns.0).sum();
        (
            unknown,
            threads
                .iter()
                .map(|thread| thread.followed_ns().0)
                .sum::<u64>(),
        )
    };
    let (_, as_it_was) = replayed(&fixture("attach"));
    let (unknown, all) = sums(&as_it_was);
    let mut more_unknown = 0;
    let touched = each_loss("attach", |loss, whole, rows, replayed| {
        let (now_unknown, now_all) = sums(replayed);
        more_unknown += usize::from(now_unknown > unknown);
        assert!(
            now_all.abs_diff(all) < all / 1000,
            "no time is lost: {now_all} of {all}"
        );
        for (stall, attribution) in rows {
            let inside = stall.cpu == loss.cpu && loss.takes_from(stall.start, stall.end);
            assert!(
                !inside || is_lost(attribution),
                "{stall:?} in {}-{}",
                loss.from.0,
                loss.to.0
            );
        }
        let before = |rows: &Rows| -> Vec<_> {
            let rows = rows.iter().filter(|(stall, _)| stall.end < loss.from);
            let mut listed: Vec<_> = rows
                .map(|(stall, listed)| (stall.start, stall.cpu, stall.victim.tid, &listed.parts))
                .collect();
            // They are reported once they are known to be over, which a loss can cause.
            listed.sort_by_key(|(start, cpu, tid, _)| (*start, *cpu, *tid));
            listed
                .into_iter()
                .map(|(start, .., parts)| (start, parts.clone()))
                .collect()
        };
        assert_eq!(before(whole), before(rows));
        whole
            .iter()
            .filter(|(s, _)| s.cpu == loss.cpu && loss.takes_from(s.start, s.end))
            .count()
    });
    assert!(
        touched > 3 && more_unknown > 3,
        "{touched} waits, {more_unknown} losses"
    );
}

#[test]
fn a_slow_message_that_a_loss_touches_gets_no_verdict() {
    let touched = each_loss("pipeline", |loss, whole, rows, _| {
        let mut touched = 0;
        assert_eq!(whole.len(), rows.len());
        for ((stall, before), (_, now)) in whole.iter().zip(rows) {
            if loss.takes_from(stall.start, stall.end) {
                assert!(
                    is_lost(now),
                    "{stall:?} touches {}-{}: {now:?}",
                    loss.from.0,
                    loss.to.0
                );
                touched += 1;
            } else if stall.end < loss.from {
                assert_eq!(before, now, "{stall:?}");
            } else {
                let may = loss.may_touch(stall.start, stall.end);
                assert!(
                    !is_lost(now) || may,
                    "{stall:?} is away from {}-{}: {now:?}",
                    loss.from.0,
                    loss.to.0
                );
            }
        }
        touched
    });
    assert!(touched > 10, "{touched}");
}

#[test]
fn what_is_watched_is_unknown_where_its_records_were_lost() {
    let (_, as_it_was) = replayed(&fixture("passive"));
    let unknown = |replayed: &Replayed| -> u64 {
        replayed
            .passive
            .as_deref()
            .unwrap()
            .iter()
            .map(|cpu| cpu.unknown_ns.0)
            .sum()
    };
    let mut more_unknown = 0;
    each_loss("passive", |loss, _, rows, replayed| {
        more_unknown += usize::from(unknown(replayed) > unknown(&as_it_was));
        for (stall, attribution) in rows {
            let inside = stall.cpu == loss.cpu && loss.takes_from(stall.start, stall.end);
            let lost = attribution
                .parts
                .iter()
                .any(|part| part.evidence == Evidence::LostRecords);
            assert!(
                !inside || lost,
                "{stall:?} in {}-{}: {attribution:?}",
                loss.from.0,
                loss.to.0
            );
        }
        0
    });
    assert!(more_unknown > 3, "{more_unknown} losses");
}
