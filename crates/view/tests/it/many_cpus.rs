//! A simulated machine of 256 CPUs: the recorded pages of one CPU are copied to all, each slightly later than the one
//! before. They are stored, attributed and reported like a real run.

use crate::full_text;
use jitterscope_analyze::RunSummary;
use jitterscope_analyze::periods::Effort;
use jitterscope_model::{Attribution, CpuId, CulpritKind, DrainTurn, Stall, StallId, Ticks};
use jitterscope_recording::{reattributed, replay};
use jitterscope_store::{RunReader, RunWriter, TracePiece};
use jitterscope_view::{Style, text};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The number of CPUs.
const CPUS: u32 = 256;
/// The recorded CPU.
const RECORDED: CpuId = CpuId(1);
/// The delay of each CPU relative to the one before, ticks: slightly less than a microsecond.
const LATER: u64 = 2500;

fn recorded() -> RunReader {
    RunReader::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../recording/tests/fixtures/spin"))
        .unwrap()
}

/// The same moment on another CPU.
fn later(at: Ticks, cpu: u32) -> Ticks {
    Ticks(at.0 + u64::from(cpu) * LATER)
}

/// A kernel page begins with the base time of its records.
fn page_later(page: &[u8], cpu: u32) -> Vec<u8> {
    let (time, rest) = page.split_first_chunk().unwrap();
    [
        &(u64::from_ne_bytes(*time) + u64::from(cpu) * LATER).to_ne_bytes(),
        rest,
    ]
    .concat()
}

/// The recorder's notes for all CPUs.
fn turn_of_all(turn: &DrainTurn) -> DrainTurn {
    let mut all = turn.clone();
    all.stalls *= u64::from(CPUS);
    all.warm_up = (0..CPUS)
        .flat_map(|cpu| {
            turn.warm_up.iter().cloned().map(move |mut of| {
                of.cpu = CpuId(cpu);
                of.gaps
                    .iter_mut()
                    .for_each(|(start, _)| *start = later(*start, cpu));
                of.begins = of.begins.map(|at| later(at, cpu));
                of
            })
        })
        .collect();
    all.stolen = (0..CPUS)
        .flat_map(|cpu| turn.stolen.iter().map(move |(_, time)| (CpuId(cpu), *time)))
        .collect();
    all.untraced = (0..CPUS)
        .flat_map(|cpu| {
            turn.untraced
                .iter()
                .map(move |(_, of)| (CpuId(cpu), of.clone()))
        })
        .collect();
    all.faults = (0..CPUS)
        .flat_map(|cpu| {
            turn.faults
                .iter()
                .map(move |(_, count)| (CpuId(cpu), *count))
        })
        .collect();
    all
}

/// Stores the run of this machine.
fn machine_of_256(dir: &Path) -> PathBuf {
    let one = recorded();
    let mut manifest = one.manifest().clone();
    let mut writer = RunWriter::create(dir, "MANY", manifest.clock_start.realtime_ns).unwrap();
    writer
        .trace_context(&one.trace_context::<serde_json::Value>().unwrap().unwrap())
        .unwrap();
    writer.begin(manifest.clock_start, manifest.rate).unwrap();
    for piece in one.trace_pieces().unwrap() {
        match piece.unwrap() {
            TracePiece::Page(page) if page.cpu == RECORDED => {
                for cpu in 0..CPUS {
                    let (first, last) = (later(page.first, cpu), later(page.last, cpu));
                    let bytes = page_later(&page.bytes, cpu);
                    writer
                        .trace_page(page.role, CpuId(cpu), first, last, &bytes)
                        .unwrap();
                }
            }
            // The other recorded CPU's senders do not exist on this machine.
            TracePiece::Page(_) => {}
            TracePiece::Turn(turn) => writer.drain_turn(&turn_of_all(&turn)).unwrap(),
            TracePiece::Missing => panic!("the fixture is whole"),
        }
    }
    for stall in one.stalls().unwrap().map(Result::unwrap) {
        for cpu in 0..CPUS {
            writer.stall(&stall_of(stall, cpu)).unwrap();
        }
    }
    for row in one.intervals().unwrap().map(Result::unwrap) {
        for cpu in 0..CPUS {
            let mut row = row;
            row.cpu = CpuId(cpu);
            writer.interval(&row).unwrap();
        }
    }
    let result = manifest.results[0].clone();
    manifest.results = (0..CPUS)
        .map(|cpu| {
            let mut of = result.clone();
            of.cpu = CpuId(cpu);
            (of.start, of.end) = (later(of.start, cpu), later(of.end, cpu));
            of.planned_end = later(of.planned_end, cpu);
            of
        })
        .collect();
    manifest.probe.cpus = (0..CPUS).map(CpuId).collect();
    manifest.host.online.clone_from(&manifest.probe.cpus);
    writer.finish(manifest).unwrap()
}

/// The same stall on another CPU.
fn stall_of(mut stall: Stall, cpu: u32) -> Stall {
    stall.id = StallId(stall.id.0 * u64::from(CPUS) + u64::from(cpu));
    stall.cpu = CpuId(cpu);
    (stall.start, stall.end) = (later(stall.start, cpu), later(stall.end, cpu));
    stall
}

/// The culprits that events name. Without times: the costs of entry and exit are learnt from all CPUs, while a single
/// CPU reaches eight samples later.
fn named(attribution: &Attribution) -> BTreeSet<(CulpritKind, String)> {
    let explained = attribution
        .parts
        .iter()
        .filter(|part| part.culprit.kind().is_explained());
    explained
        .map(|part| {
            (
                part.culprit.kind(),
                part.culprit.subject.name().into_owned(),
            )
        })
        .collect()
}

#[test]
fn each_of_256_cpus_is_attributed_and_the_report_stays_readable() {
    let alone = recorded();
    let mut of_one = BTreeMap::new();
    replay(&alone, &mut |stall, attribution| {
        of_one.insert(stall.id.0, named(&attribution.unwrap()));
    })
    .unwrap();
    assert!(
        of_one.values().filter(|names| !names.is_empty()).count() > 20,
        "{of_one:?}"
    );

    let dir = tempfile::tempdir().unwrap();
    let path = machine_of_256(dir.path());
    let run = RunReader::open(&path).unwrap();
    let rate = run.manifest().rate;
    let (mut all, mut differing) = (0, Vec::new());
    let replayed = replay(&run, &mut |stall, attribution| {
        let attribution = attribution.expect("all of its trace is there");
        assert_eq!(attribution.total(), rate.nanos(stall.length()), "{stall:?}");
        all += 1;
        let (id, names) = (stall.id.0 / u64::from(CPUS), named(&attribution));
        if names != of_one[&id] {
            differing.push(format!(
                "stall {id} on CPU {}: {names:?} for {:?}",
                stall.cpu, of_one[&id]
            ));
        }
    })
    .unwrap();
    assert_eq!(all, of_one.len() * CPUS as usize);
    assert!(
        differing.is_empty(),
        "{} of {all}: {:#?}",
        differing.len(),
        &differing[..differing.len().min(5)]
    );
    let proof = replayed.events_in_gaps.expect("all of the trace is there");
    assert!(proof.inside * 100 >= proof.events * 99, "{proof:?}");

    let summary = reattributed(&path, 10, Effort::BRIEF, false).unwrap();
    assert_eq!(summary.probe.cpus.len(), CPUS as usize);
    let of_one = reattributed(alone.path(), 10, Effort::BRIEF, false).unwrap();
    readable(&summary, &of_one);
}

/// The report is little longer than that of one CPU.
fn readable(summary: &RunSummary, of_one: &RunSummary) {
    let lines = |summary: &RunSummary, style| {
        let text = full_text(summary, style);
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        text.lines().count()
    };
    let (many, one) = (
        lines(summary, Style::default()),
        lines(of_one, Style::default()),
    );
    assert!(
        many <= one + 40,
        "{many} lines, of one CPU {one}:\n{}",
        full_text(summary, Style::default())
    );
    let brief = text::brief(summary, &text::Next::default(), Style::default());
    assert!(
        brief.lines().count() <= 23 && brief.lines().all(|line| line.chars().count() <= 80),
        "{brief}"
    );
    // All CPUs, if requested.
    let whole = full_text(
        summary,
        Style {
            all_cpus: true,
            ..Style::default()
        },
    );
    assert!(
        whole.contains(" 255") && whole.lines().count() > many,
        "{whole}"
    );
}
