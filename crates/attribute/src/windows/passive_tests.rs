//! Hand-written frames and waits, and the resulting split of a CPU's time.

use super::*;
use crate::culprits::Naming;
use crate::name_resolver::NameResolver;
use crate::occupancy::{Frame, NameTable, Outcome, Slice, Window};
use crate::senders::Senders;
use jitterscope_model::{Comm, CpuId, KernelAddr, Name, TickRate};

const OWN: i32 = 100;
const OTHER: i32 = 200;
const NONE: u32 = u32::MAX;

struct ByNumber;
impl NameResolver for ByNumber {
    fn function(&self, addr: KernelAddr) -> Name {
        format!("{:#x}", addr.0).into()
    }
    fn comm(&self, tid: i32) -> Option<Name> {
        Some(format!("t{tid}").into())
    }
}

fn thread(tid: i32) -> ThreadRef {
    ThreadRef {
        tid,
        comm: Comm::new(&format!("t{tid}")),
    }
}

fn frame(class: Class, tid: i32, parent: u32, (start, end): (u64, u64)) -> Frame {
    let (start, end) = (Ticks(start), Ticks(end));
    let inferred = Frame::inferred_turn(tid, start);
    Frame {
        class,
        parent,
        start,
        end,
        outcome: Outcome::Closed,
        ..inferred
    }
}

/// Slices as (start, frame); each ends where the next begins.
fn window(frames: Vec<Frame>, slices: &[(u64, u32)], until: u64) -> Window {
    let ends = slices.iter().skip(1).map(|slice| slice.0).chain([until]);
    let slice = |(&(start, frame), end): (&(u64, u32), u64)| Slice {
        start: Ticks(start),
        end: Ticks(end),
        frame,
        began: None,
        ended: None,
        sums: 0,
    };
    let slices: Vec<Slice> = slices.iter().zip(ends).map(slice).collect();
    Window {
        from: slices[0].start,
        until: Ticks(until),
        slices,
        frames,
        ..Window::default()
    }
}

fn waits(at: u64, tid: i32) -> Change {
    let waiting = Waiting {
        thread: thread(tid),
        phase: Phase::WaitAfterWakeUp,
    };
    Change {
        at: Ticks(at),
        waiting: Some(waiting),
    }
}

fn waits_no_more(at: u64) -> Change {
    Change {
        at: Ticks(at),
        waiting: None,
    }
}

/// (start, end, short fate, turn). Also checks that pieces are adjacent and fill the window, and that no two neighbours
/// are equal.
fn rows_of(window: &Window, changes: &[Change]) -> Vec<(u64, u64, String, usize)> {
    let (names, senders) = (NameTable::default(), Senders::new(TickRate::NANOSECONDS));
    let (cpu, resolver) = (CpuId(1), &ByNumber);
    let (names, senders) = (&names, &senders);
    let naming = Naming {
        cpu,
        victim: OWN,
        names,
        senders,
        resolver,
        quotas: &[],
        folded: false,
    };
    let named = Named::new(window, naming, &[], TickRate::NANOSECONDS);
    let found = pieces(&named, changes, |tid| (tid == OWN).then(|| thread(tid)));
    assert_eq!(
        (found[0].start, found[found.len() - 1].end),
        (window.from, window.until)
    );
    for pair in found.windows(2) {
        assert_eq!(pair[0].end, pair[1].start);
        assert!(
            (&pair[0].fate, pair[0].turn) != (&pair[1].fate, pair[1].turn),
            "{pair:?}"
        );
    }
    let short = |fate: &CpuState| match fate {
        CpuState::Own(thread) => format!("own {}", thread.tid),
        CpuState::Stolen {
            victim,
            phase,
            culprit,
        } => {
            format!("{phase} of {} by {}", victim.tid, culprit.subject.name())
        }
        CpuState::Beside(culprit) => format!("beside {}", culprit.subject.name()),
        CpuState::Idle => "idle".into(),
        CpuState::Unknown => "unknown".into(),
    };
    found
        .iter()
        .map(|piece| (piece.start.0, piece.end.0, short(&piece.fate), piece.turn))
        .collect()
}

fn row(start: u64, end: u64, fate: &str, turn: usize) -> (u64, u64, String, usize) {
    (start, end, fate.to_owned(), turn)
}

/// A turn of this thread with a softirq from 20 to 30, and a record at 60.
fn turn_of(tid: i32) -> Window {
    let frames = vec![
        frame(Class::Turn, tid, NONE, (0, 100)),
        frame(Class::Softirq, tid, 0, (20, 30)),
    ];
    window(frames, &[(0, 0), (20, 1), (30, 0), (60, 0)], 100)
}

#[test]
fn what_belongs_loses_only_what_interrupts_take() {
    let interrupted = format!("{} of {OWN} by", Phase::Interrupted);
    // Another belonging thread that waits loses nothing.
    for changes in [vec![], vec![waits(10, 101)]] {
        let found = rows_of(&turn_of(OWN), &changes);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(
            (found[0].clone(), found[2].clone()),
            (row(0, 20, "own 100", 2), row(30, 100, "own 100", 2))
        );
        assert!(found[1].2.starts_with(&interrupted), "{found:?}");
        assert_eq!((found[1].0, found[1].1, found[1].3), (20, 30, 1));
    }
}

#[test]
fn others_are_beside_until_somebody_waits_and_from_then_on_they_steal() {
    let found = rows_of(&turn_of(OTHER), &[]);
    assert_eq!(
        (found[0].clone(), found[2].clone()),
        (row(0, 20, "beside t200", 0), row(30, 100, "beside t200", 0))
    );
    assert!(
        found[1].2.starts_with("beside") && found[1].3 == 1,
        "{found:?}"
    );
    let stolen = format!("{} of {OWN} by t200", Phase::WaitAfterWakeUp);
    // In the middle of a slice, where one begins, and from before the window.
    for at in [70, 60] {
        let found = rows_of(&turn_of(OTHER), &[waits(at, OWN)]);
        assert_eq!(
            found[2..],
            [row(30, at, "beside t200", 0), row(at, 100, &stolen, 0)]
        );
    }
    let found = rows_of(&turn_of(OTHER), &[waits(0, OWN), waits_no_more(80)]);
    assert_eq!(found[0], row(0, 20, &stolen, 0));
    assert_eq!(
        found[2..],
        [row(30, 80, &stolen, 0), row(80, 100, "beside t200", 0)]
    );
    // Of several changes at one moment the last counts; one at the end changes nothing.
    let found = rows_of(
        &turn_of(OTHER),
        &[waits(40, OWN), waits_no_more(40), waits(100, OWN)],
    );
    assert_eq!(found[2..], [row(30, 100, "beside t200", 0)]);
    // Another victim makes another piece.
    let found = rows_of(&turn_of(OTHER), &[waits(40, OWN), waits(50, 101)]);
    assert_eq!(found[3].2, stolen);
    assert_eq!(
        found[4].2,
        format!("{} of 101 by t200", Phase::WaitAfterWakeUp)
    );
}

#[test]
fn two_turns_of_one_thread_are_two() {
    let turns = [(0, 50), (50, 100)].map(|time| frame(Class::Turn, OTHER, NONE, time));
    let found = rows_of(&window(turns.to_vec(), &[(0, 0), (50, 1)], 100), &[]);
    assert_eq!(
        found,
        [row(0, 50, "beside t200", 0), row(50, 100, "beside t200", 1)]
    );
}

#[test]
fn idle_states_and_faults_are_those_of_their_thread() {
    let frames = vec![
        frame(Class::Turn, 0, NONE, (0, 50)),
        frame(Class::Idle, 0, 0, (10, 20)),
        frame(Class::Turn, OTHER, NONE, (50, 100)),
        frame(Class::Fault, OTHER, 2, (60, 100)),
    ];
    let window = window(frames, &[(0, 0), (10, 1), (20, 0), (50, 2), (60, 3)], 100);
    assert_eq!(
        rows_of(&window, &[]),
        [row(0, 50, "idle", 4), row(50, 100, "beside t200", 2)]
    );
    let found = rows_of(&window, &[waits(0, OWN), waits_no_more(50)]);
    assert!(
        found[0]
            .2
            .starts_with(&format!("{} of {OWN}", Phase::WaitAfterWakeUp)),
        "{found:?}"
    );
    assert_eq!((found.len(), found[0].1), (2, 50));
    let mut own = window;
    own.frames.iter_mut().for_each(|frame| frame.tid = OWN);
    assert_eq!(rows_of(&own, &[]), [row(0, 100, "own 100", 4)]);
}

#[test]
fn unrecorded_time_is_unknown_and_an_unseen_switch_can_steal() {
    for (class, steals) in [
        (Class::NotSeen, false),
        (Class::Lost, false),
        (Class::Unrecorded, true),
    ] {
        let window = window(vec![frame(class, -1, NONE, (0, 100))], &[(0, 0)], 100);
        assert_eq!(rows_of(&window, &[]), [row(0, 100, "unknown", 1)]);
        let waited = rows_of(&window, &[waits(0, OWN)]);
        let stolen = waited[0]
            .2
            .starts_with(&format!("{} of {OWN}", Phase::WaitAfterWakeUp));
        assert_eq!((stolen, waited.len()), (steals, 1), "{waited:?}");
    }
}
