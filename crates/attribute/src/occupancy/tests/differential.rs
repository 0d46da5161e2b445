//! Compares the machine with another interpretation of the same records ([`older`](super::older)).
//!
//! Where the older one is right, both agree. They differ on purpose in these cases:
//! - A record names a thread that cannot have the turn: the older one continues with the known turn; the machine treats
//!   the time since the last record as without a known thread ([`an_unrecorded_switch_is_nobodys`]).
//! - A thread executes another program in the middle of a turn: the older one uses the name at the turn's beginning,
//!   the machine the one at its end ([`a_program_that_begins_within_a_turn_names_it`]).
//! - The exit of an interrupt was lost: in the older one it lasts to the end of the stall, with all later activity
//!   inside; in the machine it ends where the next of its class begins ([`a_lost_exit_ends_at_the_next_entry`]).
//! - The first switch of a stall leaves a thread that was never put on the CPU: the older one closes all open frames as
//!   if their exits were recorded; the machine marks them as not recorded.

use super::common::*;
use super::older::{Frame, Timeline};
use crate::occupancy::{Class, Machine, Window};
use jitterscope_model::{Comm, EventKind, KernelEvent, Stall, StallId, ThreadRef, TickRate, Ticks};
use jitterscope_model::{CpuId, TaskRef};
use proptest::prelude::*;

/// The victim's experience: nothing, a thread's turn (its id), or a frame inside (its key).
type Suffered = Vec<(u64, u64, Option<(Class, u64)>)>;

fn joined(stretches: impl Iterator<Item = (u64, u64, Option<(Class, u64)>)>) -> Suffered {
    let mut found: Suffered = Vec::new();
    for (from, until, what) in stretches {
        match found.last_mut() {
            Some(last) if last.2 == what => last.1 = until,
            _ => found.push((from, until, what)),
        }
    }
    found
}

fn before(events: &[KernelEvent], until: u64) -> Suffered {
    older(VICTIM, events, (0, until), TickRate::NANOSECONDS)
}

/// For a victim that was away from the first of these records to the last.
fn before_of(victim: i32, events: &[KernelEvent], rate: TickRate) -> Suffered {
    older(
        victim,
        events,
        (events[0].time.0, events[events.len() - 1].time.0),
        rate,
    )
}

fn older(
    victim: i32,
    events: &[KernelEvent],
    (from, until): (u64, u64),
    rate: TickRate,
) -> Suffered {
    let victim = ThreadRef {
        tid: victim,
        comm: Comm::new("victim"),
    };
    let stall = Stall {
        id: StallId(0),
        cpu: CpuId(1),
        victim,
        start: Ticks(from),
        end: Ticks(until),
    };
    let timeline = Timeline::build(&stall, events, rate);
    let stretches = timeline.stretches.iter();
    joined(
        stretches
            .map(|(from, to, frame)| (from.0, to.0, frame.map(|at| what(&timeline.frames[at])))),
    )
}

fn what(frame: &Frame) -> (Class, u64) {
    match &frame.opening.kind {
        EventKind::SchedSwitch { next, .. } => (Class::Turn, next.tid as u64),
        EventKind::VectorEntry { vector } if &**vector == "local_timer" => (Class::LocalTimer, 0),
        EventKind::VectorEntry { vector } if &**vector == "reschedule" => (Class::Vector, 1),
        EventKind::VectorEntry { .. } => (Class::Vector, 2),
        EventKind::IrqEntry { irq, .. } => (Class::Irq, u64::from(*irq)),
        EventKind::SoftirqEntry { vec } => (Class::Softirq, u64::from(*vec)),
        EventKind::HrtimerEntry { hrtimer, .. } => (Class::HrtimerFunction, *hrtimer),
        EventKind::TimerEntry { timer, .. } => (Class::WheelFunction, *timer),
        EventKind::CsdEntry { csd, .. } => (Class::Call, *csd),
        EventKind::WorkStart { work, .. } => (Class::Work, *work),
        EventKind::NmiHandler { handler, .. } => (Class::Nmi, handler.0),
        EventKind::PageFault { user, .. } => (Class::Fault, u64::from(*user)),
        other => panic!("{other:?} opens no frame"),
    }
}

fn now(events: &[KernelEvent], until: u64) -> Suffered {
    suffered(VICTIM, &window(events, 0, until))
}

fn now_of(victim: i32, events: &[KernelEvent], rate: TickRate) -> Suffered {
    let mut machine = Machine::new(rate);
    machine.running(victim, events[0].time);
    let mark = machine.open_mark(events[0].time);
    records(events)
        .iter()
        .for_each(|record| machine.record(record));
    let mut window = Window::default();
    machine.close_mark(mark, events[events.len() - 1].time, &mut window);
    suffered(victim, &window)
}

fn suffered(victim: i32, window: &Window) -> Suffered {
    joined(window.slices.iter().map(|slice| {
        let root = window.frame(window.root(slice.frame));
        // Private frames of the thread: its faults, and idle states.
        let own = |class| class == Class::Idle || (class == Class::Fault && root.tid != victim);
        let frame = window
            .chain(slice.frame)
            .map(|at| window.frame(at))
            .find(|frame| !own(frame.class));
        let frame = frame.expect("a root");
        let what = match frame.class {
            Class::Turn => (frame.tid != victim).then_some((Class::Turn, frame.tid as u64)),
            class => Some((class, frame.key)),
        };
        (slice.start.0, slice.end.0, what)
    }))
}

#[allow(dead_code)]
#[path = "../../../../source/tests/support/fixture.rs"]
mod fixture;

/// The records of the measured CPU in a recorded second.
fn recorded() -> Vec<KernelEvent> {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../source/tests/fixtures/vm-1s");
    let (context, pages) = fixture::read(&folder);
    let mut decoder = jitterscope_source::Decoder::new(&context).expect("the fixture's context");
    let mut events = Vec::new();
    for page in pages
        .iter()
        .filter(|page| page.role == jitterscope_source::Role::Local)
    {
        decoder
            .page(page.cpu, &page.bytes, |event| events.push(event))
            .expect("the fixture's page");
    }
    assert!(
        events.is_sorted_by_key(|event| event.time),
        "one CPU's records are in order"
    );
    events
}

/// Both ways, for each time that each thread was away from a recorded CPU.
#[test]
fn both_tell_the_same_of_a_recorded_second() {
    let events = recorded();
    let rate = TickRate {
        hz: 2_600_000_000,
        ..TickRate::NANOSECONDS
    };
    let mut left: std::collections::BTreeMap<i32, usize> = std::collections::BTreeMap::new();
    let (mut windows, mut slices) = (0, 0);
    for (at, event) in events.iter().enumerate() {
        let EventKind::SchedSwitch { prev, next, .. } = &event.kind else {
            continue;
        };
        if let Some(from) = left.get(&next.tid) {
            let inside = &events[*from..=at];
            let found = now_of(next.tid, inside, rate);
            assert_eq!(
                found,
                before_of(next.tid, inside, rate),
                "pid {} away",
                next.tid
            );
            windows += 1;
            slices += found.len();
        }
        left.insert(prev.tid, at);
    }
    assert!(windows > 500 && slices > 2 * windows, "{windows} {slices}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn both_tell_the_same_of_what_was_recorded_whole(acts in acts(200), threaded: bool) {
        let fake = FakeCpu::play(&acts, threaded);
        prop_assert_eq!(now(&fake.events, fake.now), before(&fake.events, fake.now));
    }
}

#[test]
fn an_unrecorded_switch_is_nobodys() {
    let events = [switch(100, VICTIM, 200), switch(900, 201, VICTIM)];
    let turn = Some((Class::Turn, 200));
    assert_eq!(
        before(&events, 1000),
        [(0, 100, None), (100, 900, turn), (900, 1000, None)]
    );
    let nobody = Some((Class::Unrecorded, u64::MAX));
    assert_eq!(
        now(&events, 1000),
        [(0, 100, None), (100, 900, nobody), (900, 1000, None)]
    );
}

#[test]
fn a_lost_exit_ends_at_the_next_entry() {
    let [entry, _] = tick(100, 200, VICTIM);
    let events: Vec<KernelEvent> = [entry].into_iter().chain(tick(500, 600, VICTIM)).collect();
    let timer = Some((Class::LocalTimer, 0));
    assert_eq!(before(&events, 1000), [(0, 100, None), (100, 1000, timer)]);
    assert_eq!(
        now(&events, 1000),
        [(0, 100, None), (100, 600, timer), (600, 1000, None)]
    );
}

#[test]
fn a_program_that_begins_within_a_turn_names_it() {
    let named = |comm: &str| TaskRef {
        comm: Comm::new(comm),
        ..task(300)
    };
    let kind = |prev, next| EventKind::SchedSwitch {
        prev,
        prev_state: 1,
        next,
    };
    let events = [
        at(100, VICTIM, kind(task(VICTIM), named("sh"))),
        at(900, 300, kind(named("sha1sum"), task(VICTIM))),
    ];
    let window = window(&events, 0, 1000);
    let turn = window
        .frames
        .iter()
        .find(|frame| frame.tid == 300)
        .expect("the turn");
    let mut names = names();
    records_with(&events, &mut names);
    assert_eq!(names.comm(turn.comm), Some(Comm::new("sh")));
    assert_eq!(names.comm(turn.named()), Some(Comm::new("sha1sum")));
}
