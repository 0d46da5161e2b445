//! For any activity of a CPU: slices tile its time, match its activity, and respect the memory limit.

use super::common::*;
use crate::occupancy::{Class, Machine, Mark, Record, Slice, Window};
use jitterscope_model::{EventKind, TaskRef, Ticks};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn tiles(window: &Window) -> Result<(), TestCaseError> {
    let mut at = window.from;
    for slice in &window.slices {
        prop_assert_eq!(slice.start, at);
        prop_assert!(slice.start < slice.end);
        let frame = window.frame(slice.frame);
        prop_assert!(
            frame.start <= slice.start && slice.end <= frame.end,
            "{slice:?} {frame:?}"
        );
        at = slice.end;
    }
    prop_assert_eq!(at, window.until);
    Ok(())
}

/// Sums by thread, including everything inside its turns.
fn by_thread(window: &Window) -> BTreeMap<(Class, i32), u64> {
    let mut sums = BTreeMap::new();
    for slice in &window.slices {
        let root = window.frame(window.root(slice.frame));
        *sums.entry((root.class, root.tid)).or_default() += slice.length().0;
    }
    sums
}

/// The innermost frame and the thread of a slice. Interrupts and the frames that name them count together.
fn group(window: &Window, slice: &Slice) -> (u8, i32) {
    let group = match window.frame(slice.frame).class {
        Class::LocalTimer | Class::Vector | Class::Call | Class::HrtimerFunction => 1,
        Class::Softirq | Class::WheelFunction => 2,
        // A worker's item provides the name of its turn.
        Class::Turn | Class::Work => 3,
        other => 10 + other as u8,
    };
    (group, window.frame(window.root(slice.frame)).tid)
}

/// Sums by innermost frame.
fn by_group(window: &Window) -> BTreeMap<(u8, i32), u64> {
    let mut sums = BTreeMap::new();
    for slice in &window.slices {
        *sums.entry(group(window, slice)).or_default() += slice.length().0;
    }
    sums
}

/// The number of slices by innermost frame, in the same groups.
fn turns_by_group(window: &Window) -> BTreeMap<(u8, i32), u32> {
    let mut sums = BTreeMap::new();
    for slice in &window.slices {
        *sums.entry(group(window, slice)).or_default() += slice.turns();
    }
    sums
}

/// Random records without any order: frames do not nest or end properly.
fn mad(acts: &[Act]) -> Vec<Record> {
    let mut all: Vec<Record> = Vec::new();
    for (index, chunk) in acts.chunks(7).enumerate() {
        let mut records = records(&FakeCpu::play(chunk, index % 2 == 0).events);
        if index % 3 == 0 {
            records.retain(|record| record.key % 2 == 0);
        }
        let base = all.last().map_or(0, |record| record.time.0);
        records
            .iter_mut()
            .for_each(|record| record.time = record.time + Ticks(base));
        all.extend(records);
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn slices_say_what_the_cpu_did(acts in acts(150), threaded: bool, from in 0..3000_u64, length in 0..3000_u64) {
        let fake = FakeCpu::play(&acts, threaded);
        let (from, until) = (from.min(fake.now), (from + length).min(fake.now));
        // A handler's record, at its end, belongs to the window that it ends in.
        let nmi = |(from, to, who): &&(u64, u64, Who)| who.class == Class::Nmi && *from < until && until < *to;
        let until = fake.truth.iter().find(nmi).map_or(until, |nmi| nmi.1);
        let window = window(&fake.events, from, until);
        tiles(&window)?;
        prop_assert_eq!(stretches(&window), fake.between(from, until));
    }

    #[test]
    fn whatever_was_recorded_slices_tile_and_frames_nest(
        acts in acts(200),
        losses in proptest::collection::vec((0..200_usize, 0..50_u64), 0..3),
        proofs in proptest::collection::vec(0..200_usize, 0..4),
        marks in proptest::collection::vec((0..200_usize, 0..200_usize), 1..8),
        cap in prop_oneof![Just(1 << 20), 400..4000_usize],
    ) {
        let records = mad(&acts);
        let mut machine = machine().with_cap(cap);
        let mut open: Vec<(usize, Mark, Ticks)> = Vec::new();
        let mut window = Window::default();
        let mut now = Ticks(0);
        for (index, record) in records.iter().enumerate() {
            for (_, length) in losses.iter().filter(|(at, _)| *at == index) {
                machine.lost(now, now + Ticks(*length));
                now = now + Ticks(*length);
            }
            if proofs.contains(&index) {
                machine.running(VICTIM, now);
            }
            for (_, length) in marks.iter().filter(|(at, _)| *at == index) {
                open.push((index + length, machine.open_mark(now), now));
            }
            machine.record(record);
            now = now.max(record.time);
            while let Some(at) = open.iter().position(|(until, ..)| *until <= index) {
                let (_, mark, from) = open.remove(at);
                machine.close_mark(mark, now, &mut window);
                prop_assert_eq!((window.from, window.until), (from, now));
                tiles(&window)?;
                for slice in &window.slices {
                    prop_assert!(window.frame(window.root(slice.frame)).class.is_root());
                    for inner in window.chain(slice.frame) {
                        let (frame, parent) = (window.frame(inner), window.frame(window.root(inner)));
                        prop_assert!(parent.start <= frame.start && frame.end <= parent.end);
                    }
                }
            }
        }
        for (_, mark, from) in open {
            machine.close_mark(mark, now, &mut window);
            prop_assert_eq!((window.from, window.until), (from, now));
            tiles(&window)?;
        }
        // Without marks only open frames are kept.
        prop_assert!(machine.bytes() <= 26 * 64);
    }

    #[test]
    fn a_window_is_the_same_whoever_else_asks_and_however_much_came_later(
        acts in acts(150),
        windows in proptest::collection::vec((0..3000_u64, 0..3000_u64), 1..5),
    ) {
        // An NMI's record describes the time before it, and belongs to the window that it is in.
        let acts: Vec<Act> = acts.into_iter().filter(|act| act.what % 16 != 0).collect();
        let fake = FakeCpu::play(&acts, false);
        let records = records(&fake.events);
        let mut machine = machine();
        machine.running(VICTIM, Ticks(0));
        let clip = |(from, length): &(u64, u64)| (from.min(&fake.now).to_owned(), (from + length).min(fake.now));
        let mut windows: Vec<(u64, u64)> = windows.iter().map(clip).collect();
        windows.sort_unstable();
        let mut fed = 0;
        let mut marks = Vec::new();
        for (from, until) in &windows {
            let before = records.partition_point(|record| record.time.0 < *from).max(fed);
            records[fed..before].iter().for_each(|record| machine.record(record));
            fed = before;
            marks.push((machine.open_mark(Ticks(*from)), *from, *until));
        }
        records[fed..].iter().for_each(|record| machine.record(record));
        let mut found = Window::default();
        for (mark, from, until) in marks {
            machine.close_mark(mark, Ticks(until), &mut found);
            tiles(&found)?;
            let alone = window(&fake.events, from, until);
            prop_assert_eq!(stretches(&found), stretches(&alone));
            prop_assert_eq!(&found.slices.len(), &alone.slices.len());
        }
    }

    #[test]
    fn beyond_its_cap_the_ring_keeps_the_sums_exact_and_says_so(
        acts in acts(600),
        marks in proptest::collection::vec(0..600_usize, 1..4),
        cap in 1000..20_000_usize,
    ) {
        let fake = FakeCpu::play(&acts, false);
        let records = records(&fake.events);
        let play = |machine: Machine| {
            let mut machine = machine;
            machine.running(VICTIM, Ticks(0));
            let mut open = vec![machine.open_mark(Ticks(0))];
            let mut most = 0;
            for (index, record) in records.iter().enumerate() {
                machine.record(record);
                open.extend(marks.iter().filter(|at| **at == index).map(|_| machine.open_mark(record.time)));
                most = most.max(machine.bytes());
            }
            let mut windows = Vec::new();
            for mark in open {
                let mut window = Window::default();
                machine.close_mark(mark, Ticks(fake.now), &mut window);
                windows.push(window);
            }
            (windows, most)
        };
        let (whole, unfolded) = play(machine());
        let (folded, most) = play(machine().with_cap(cap));
        for (whole, folded) in whole.iter().zip(&folded) {
            tiles(folded)?;
            prop_assert_eq!(by_thread(whole), by_thread(folded));
            prop_assert_eq!(by_group(whole), by_group(folded));
            prop_assert_eq!(turns_by_group(whole), turns_by_group(folded));
            prop_assert_eq!(whole.folded(), Ticks(0));
        }
        if folded.iter().all(|window| window.folded() == Ticks(0)) {
            prop_assert!(unfolded <= cap.max(most));
        }
    }
}

/// Sums of turns, by thread and priority, as the victim sees them with a small limit.
fn folded_turns(turns: impl Iterator<Item = (u64, TaskRef)>) -> BTreeMap<(i32, i16), u64> {
    let mut names = names();
    let mut machine = machine().with_cap(20_000);
    machine.running(VICTIM, Ticks(0));
    let mark = machine.open_mark(Ticks(0));
    let (mut now, mut prev) = (100, task(VICTIM));
    for (length, next) in turns.chain([(0, task(VICTIM))]) {
        let event = at(
            now,
            prev.tid,
            EventKind::SchedSwitch {
                prev,
                prev_state: 1,
                next,
            },
        );
        machine.record(&Record::new(&event, &mut names));
        (now, prev) = (now + length, next);
    }
    let mut window = Window::default();
    machine.close_mark(mark, Ticks(now), &mut window);
    assert!(window.folded() > Ticks(0));
    let mut sums = BTreeMap::new();
    for slice in &window.slices {
        let frame = window.frame(slice.frame);
        *sums.entry((frame.tid, frame.priority())).or_default() += slice.length().0;
    }
    sums
}

#[test]
fn who_had_most_of_a_folded_time_is_named_however_late_he_came() {
    let short = |from: i32| (0..4000).map(move |n| (10, task(from + n)));
    let sums = folded_turns(
        short(1000)
            .chain([(1_000_000, task(77))])
            .chain(short(6000)),
    );
    assert_eq!(sums.get(&(77, 120)), Some(&1_000_000));
    let nameless = sums[&(-1, 120)];
    assert!(nameless > 10_000, "{nameless}");
}

#[test]
fn turns_of_different_urgency_are_no_one_sum() {
    // If a sum mixed priorities, its first turn would decide whether all of it is real-time throttling.
    let of = |n: i32| TaskRef {
        prio: if n % 2 == 0 { 49 } else { 120 },
        ..task(1000 + n / 2)
    };
    let sums = folded_turns((0..8000).map(|n| (if n % 2 == 0 { 30 } else { 10 }, of(n))));
    let sum = |prio| {
        sums.iter()
            .filter(|((_, of), _)| *of == prio)
            .map(|(_, ns)| ns)
            .sum::<u64>()
    };
    // The victim's own turn has no record: its first 100 have the priority that it left with.
    assert_eq!((sum(49), sum(120)), (120_000, 40_100));
    assert!(sums.contains_key(&(-1, 49)) && sums.contains_key(&(-1, 120)));
}

#[test]
fn of_each_class_of_urgency_what_is_summed_up_has_a_sum_of_its_own() {
    // Deadline, the limits of the real-time and fair classes, and an unknown one.
    let prios = [-1, 0, 99, 100, 139, i16::MIN.into()];
    let of = |n: usize| TaskRef {
        prio: prios[n % prios.len()],
        ..task(1000 + n as i32 / 2)
    };
    let sums = folded_turns((0..12_000).map(|n| (10, of(n))));
    let sum = |among: std::ops::RangeInclusive<i16>| {
        sums.iter()
            .filter(|((_, prio), _)| among.contains(prio))
            .map(|(_, ns)| ns)
            .sum::<u64>()
    };
    // The victim's own turn has the priority that it left with.
    assert_eq!(
        [sum(-1..=-1), sum(0..=99), sum(100..=139)],
        [20_000, 40_000, 40_100]
    );
    assert_eq!(sum(i16::MIN..=i16::MIN), 20_000);
}

#[test]
fn a_busy_cpu_stays_within_the_cap() {
    let mut events = Vec::new();
    for n in 0..100_000_u64 {
        let base = n * 100;
        events.extend(tick(base + 10, base + 20, 200));
        events.push(switch(base + 30, 200, 201));
        events.push(switch(base + 60, 201, 200));
    }
    let cap = 100_000;
    let mut machine = machine().with_cap(cap);
    let mark = machine.open_mark(Ticks(0));
    let mut most = 0;
    for record in records(&events) {
        machine.record(&record);
        most = most.max(machine.bytes());
    }
    assert!(most <= cap + 200, "{most}");
    let mut window = Window::default();
    machine.close_mark(mark, Ticks(10_000_000), &mut window);
    let sum = |class, tid| -> u64 {
        let of = |slice: &&crate::occupancy::Slice| {
            let (frame, root) = (
                window.frame(slice.frame),
                window.frame(window.root(slice.frame)),
            );
            (frame.class, root.tid) == (class, tid)
        };
        window
            .slices
            .iter()
            .filter(of)
            .map(|slice| slice.length().0)
            .sum()
    };
    // The first ten ticks have no record.
    assert_eq!(sum(Class::NotSeen, -1), 10);
    assert_eq!(sum(Class::LocalTimer, 200), 1_000_000);
    assert_eq!(sum(Class::Turn, 201), 3_000_000);
    assert_eq!(sum(Class::Turn, 200), 6_000_000 - 10);
    assert!(window.folded() > Ticks(9_000_000));
    // A tick, another turn, and the two pieces of a turn around them, each time; and what was before the first record.
    let turns = window.slices.iter().map(Slice::turns).sum::<u32>();
    assert_eq!(turns, 400_001);
}
