//! An attributor's results about a whole recording, other than its stalls.

use crate::common::*;
use jitterscope_attribute::{Attributor, Edge, FrequencyChanges, NameResolver, OutsideHints};
use jitterscope_model::{
    Comm, CpuId, CulpritKind, EventKind, ExecutionContext, KernelAddr, KernelEvent, Name, Nanos,
    Subject, TaskRef, Ticks,
};
use std::cell::Cell;

/// A tick of 400 ticks' length, which begins `lead` after the beginning of a stall and ends a hundred before its end.
fn tick_in_stall(a: &mut Attributor, start: u64, lead: u64) -> jitterscope_model::Stall {
    let events = [
        enter(start + lead, "local_timer"),
        exit(start + lead + 400, "local_timer"),
    ];
    with_current(&events)
        .iter()
        .for_each(|event| a.event(event));
    stall(start, start + lead + 500)
}

/// A record of another CPU.
fn elsewhere(time: u64, tid: i32, kind: EventKind) -> KernelEvent {
    let (time, cpu, context) = (Ticks(time), CpuId(0), ExecutionContext::Thread);
    KernelEvent {
        time,
        cpu,
        tid,
        context,
        kind,
    }
}

#[test]
fn only_used_stalls_of_the_warm_up_teach_edge_costs() {
    let mut a = attributor(false);
    let samples = |a: &Attributor| {
        [Edge::LeadInterrupt, Edge::TrailInterrupt].map(|edge| {
            let cost = a.costs().get(edge);
            (cost.smallest.0, cost.samples)
        })
    };
    // No event is in it.
    a.learn(&stall(10, 500), &Names);
    assert_eq!(samples(&a), [(0, 0); 2]);
    for n in 1..=8 {
        let stall = tick_in_stall(&mut a, n * 1000, 100 + n);
        a.learn(&stall, &Names);
    }
    assert_eq!(samples(&a), [(101, 8), (100, 8)]);
    // Its edges would be cheaper.
    let stall = tick_in_stall(&mut a, 10_000, 5);
    a.pass_over(&stall);
    assert_eq!(samples(&a), [(101, 8), (100, 8)]);
    assert_eq!(
        (a.events_in_gaps().events, a.events_in_gaps().inside),
        (18, 18),
        "its events are gone"
    );
    // The measured costs are granted from the first measured stall on.
    let stall = tick_in_stall(&mut a, 20_000, 150);
    assert_eq!(
        shown(&attribute(&mut a, &stall, &[])),
        ["unresolved/before first event 49", "timer/local_timer 601"]
    );
}

#[test]
fn what_takes_less_than_the_threshold_need_not_lie_in_a_gap() {
    let visit = [enter(5000, "local_timer"), exit(5400, "local_timer")];
    let too_short = |threshold: Option<u64>| {
        let mut a = attributor(false);
        if let Some(threshold) = threshold {
            a.threshold(Ticks(threshold));
        }
        // The probe is known to run.
        attribute(
            &mut a,
            &stall(1000, 2000),
            &[enter(1100, "reschedule"), exit(1900, "reschedule")],
        );
        with_current(&visit).iter().for_each(|event| a.event(event));
        a.finish(&[(CPU, Ticks(9000))]);
        (a.events_in_gaps().events, a.events_in_gaps().too_short)
    };
    // 300 of the threshold are for entry and exit.
    assert_eq!(
        [None, Some(700), Some(701)].map(too_short),
        [(4, 0), (4, 0), (4, 2)]
    );
}

#[test]
fn a_cpu_counts_from_the_first_read_of_its_probe() {
    let mut a = attributor(false);
    a.begin(CPU, Ticks(5200));
    let events = [enter(5000, "local_timer"), exit(5400, "local_timer")];
    with_current(&events)
        .iter()
        .for_each(|event| a.event(event));
    a.finish(&[(CPU, Ticks(9000))]);
    assert_eq!(a.events_in_gaps().events, 1);
}

#[test]
fn frequency_records_belong_to_the_cpu_they_name() {
    let mut a = attributor(false);
    let far = CpuId(2);
    for (time, khz) in [(100, 2_000_000), (200, 800_000)] {
        a.event(&at(time, EventKind::CpuFrequency { target: far, khz }));
    }
    let changes = FrequencyChanges {
        times: 2,
        lowest_khz: 800_000,
        highest_khz: 2_000_000,
    };
    assert_eq!(
        a.frequencies().iter().collect::<Vec<_>>(),
        [(&far, &changes)]
    );
}

#[test]
fn an_item_that_sleeps_is_its_workers_until_the_id_begins_again() {
    let worker = task(50, "kworker/1:2", 120);
    let run = |from, until| {
        [
            switch(from, victim(), worker),
            switch(until, worker, victim()),
        ]
    };
    let start = EventKind::WorkStart {
        work: 9,
        function: KernelAddr(2),
    };
    for (begins_at, function) in [(None, Some("vmstat_update")), (Some(5000), None)] {
        let mut a = attributor(false);
        let [come, go] = run(1000, 3000);
        let begun = KernelEvent {
            tid: 50,
            ..at(1200, start.clone())
        };
        attribute(&mut a, &stall(1000, 3000), &[come, begun, go]);
        if let Some(time) = begins_at {
            let kind = EventKind::TaskNew {
                tid: 50,
                comm: Comm::new("kworker/1:2"),
                thread: true,
                into_cgroup: false,
            };
            a.sender_event(&elsewhere(time, 2, kind));
        }
        let sleeping: Vec<i32> = a
            .sleeping_works(CPU, Ticks(6000))
            .iter()
            .map(|row| row.tid)
            .collect();
        assert_eq!(sleeping, if begins_at.is_some() { &[][..] } else { &[50] });
        let got = attribute(&mut a, &stall(7000, 8000), &run(7000, 8000));
        let Subject::Work(work) = &got.parts[0].culprit.subject else {
            panic!("{:?}", got.parts)
        };
        assert_eq!(work.function.as_deref(), function);
    }
}

/// The waker of the thread that took the CPU.
fn waker_of(a: &mut Attributor, noise: TaskRef) -> Option<i32> {
    let events = [switch(1500, victim(), noise), switch(9000, noise, victim())];
    let got = attribute(a, &stall(1000, 9500), &events);
    got.parts
        .iter()
        .find_map(|part| part.culprit.sender.as_ref())
        .map(|sender| sender.tid)
}

#[test]
fn no_sender_is_named_where_records_of_senders_were_lost() {
    let noise = task(200, "noise", 120);
    let wakes = elsewhere(
        900,
        7,
        EventKind::SchedWaking {
            task: noise,
            target: CPU,
        },
    );
    for (lost, waker) in [
        (None, Some(7)),
        (Some((950, 1400)), None),
        (Some((100, 800)), Some(7)),
    ] {
        let mut a = attributor(false);
        a.sender_event(&wakes);
        if let Some((from, to)) = lost {
            a.senders_lost(Ticks(from), Ticks(to));
        }
        assert_eq!(waker_of(&mut a, noise), waker, "{lost:?}");
    }
}

#[test]
fn a_crowded_stall_states_its_folded_time_and_exact_sums() {
    let many = 40_000;
    let mut a = attributor(false);
    let whole = stall(1000, 1000 + many * 100);
    for n in 0..many {
        let from = 1010 + n * 100;
        for event in with_current(&[enter(from, "reschedule"), exit(from + 30, "reschedule")]) {
            a.event(&event);
        }
    }
    let got = a.attribute(
        &whole,
        &jitterscope_attribute::OutsideHints::default(),
        &Names,
    );
    assert_eq!(got.total(), jitterscope_model::Nanos(many * 100));
    let of = |name: &str| {
        shown(&got)
            .iter()
            .any(|row| *row == format!("{name} {}", many * 30))
    };
    assert!(of("ipi/reschedule"), "{:?}", shown(&got));
    let folded = a.folded();
    assert!(
        Ticks(many * 50) < folded && folded < whole.length(),
        "{folded:?}"
    );
    // Sums over the stalls.
    attribute(
        &mut a,
        &stall(5_000_000, 5_001_000),
        &[
            enter(5_000_100, "reschedule"),
            exit(5_000_200, "reschedule"),
        ],
    );
    assert_eq!(a.folded(), folded);
}

#[test]
fn what_is_dropped_of_too_many_records_of_senders_is_counted() {
    let mut a = attributor(false);
    assert_eq!(a.senders_dropped(), 0);
    let noise = task(200, "noise", 120);
    for time in 0..(1 << 20) + 3 {
        a.sender_event(&elsewhere(
            time,
            7,
            EventKind::SchedMigrate {
                task: noise,
                from: CPU,
                to: CPU,
            },
        ));
    }
    assert_eq!(a.senders_dropped(), 3);
}

/// Gives every function its current name.
struct Renamed(Cell<&'static str>);

impl NameResolver for Renamed {
    fn function(&self, _: KernelAddr) -> Name {
        self.0.get().into()
    }

    fn comm(&self, _: i32) -> Option<Name> {
        Some(self.0.get().into())
    }
}

/// A woken thread runs instead of the victim, and a timer function runs in its time.
#[test]
fn names_are_asked_for_again_once_they_may_be_others() {
    let (mut a, names) = (attributor(false), Renamed(Cell::new("first")));
    let noise = task(200, "noise", 120);
    let mut reported = |now: u64, forget: bool| {
        let wakes = EventKind::SchedWaking {
            task: noise,
            target: CPU,
        };
        a.sender_event(&elsewhere(now - 10, 300, wakes));
        let events = [
            switch(now + 100, victim(), noise),
            hrtimer(now + 200, 4),
            hrtimer_exit(now + 300),
            switch(now + 400, noise, victim()),
        ];
        with_current(&events)
            .iter()
            .for_each(|event| a.event(event));
        if forget {
            a.forget_names();
        }
        let got = a.attribute(&stall(now, now + 500), &OutsideHints::default(), &names);
        let waker = got
            .parts
            .iter()
            .find_map(|part| part.culprit.sender.as_ref()?.comm.clone());
        let timer = got
            .parts
            .iter()
            .find(|part| part.culprit.kind() == CulpritKind::Timer);
        (
            waker.unwrap().to_string(),
            timer.unwrap().culprit.subject.name().into_owned(),
        )
    };
    let both = |name: &str| (name.to_owned(), name.to_owned());
    assert_eq!(reported(1_000, false), both("first"));
    names.0.set("second");
    assert_eq!(
        reported(2_000, false),
        both("first"),
        "they were asked for once"
    );
    assert_eq!(reported(3_000, true), both("second"));
}

#[test]
fn equal_names_are_one_part_whatever_numbers_they_follow_from() {
    let mut a = attributor(false);
    // Two timers with one function.
    let events = [
        enter(1_100, "local_timer"),
        at(
            1_200,
            EventKind::HrtimerEntry {
                hrtimer: 1,
                function: KernelAddr(4),
                now: Nanos(0),
            },
        ),
        at(1_300, EventKind::HrtimerExit { hrtimer: 1 }),
        exit(1_400, "local_timer"),
        enter(1_500, "local_timer"),
        at(
            1_600,
            EventKind::HrtimerEntry {
                hrtimer: 2,
                function: KernelAddr(4),
                now: Nanos(0),
            },
        ),
        at(1_700, EventKind::HrtimerExit { hrtimer: 2 }),
        exit(1_800, "local_timer"),
    ];
    let got = attribute(&mut a, &stall(1_000, 1_900), &events);
    let timers = got
        .parts
        .iter()
        .filter(|part| part.culprit.kind() == CulpritKind::Timer);
    assert_eq!(timers.map(|part| part.net.0).collect::<Vec<_>>(), [600]);
}
