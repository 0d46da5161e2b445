use super::*;
use crate::name_resolver::NoNames;
use crate::{Attributor, AttributorSettings};
use jitterscope_model::{
    Comm, CpuId, EventKind, ExecutionContext, KernelAddr, KernelEvent, SchedClass, StallId,
    TaskRef, ThreadRef, Work, Worker,
};
use proptest::prelude::*;

const VICTIM: i32 = 50;

fn stall(start: u64, end: u64) -> Stall {
    Stall {
        id: StallId(0),
        cpu: CpuId(1),
        victim: ThreadRef {
            tid: VICTIM,
            comm: Comm::new("js-wake/1"),
        },
        start: Ticks(start),
        end: Ticks(end),
    }
}

fn task(tid: i32, comm: &str, prio: i32) -> TaskRef {
    TaskRef {
        tid,
        comm: Comm::new(comm),
        prio,
    }
}

fn victim() -> TaskRef {
    task(VICTIM, "js-wake/1", 120)
}

fn idle() -> TaskRef {
    task(0, "swapper/1", 120)
}

fn at(time: u64, kind: EventKind) -> KernelEvent {
    KernelEvent {
        time: Ticks(time),
        cpu: CpuId(1),
        tid: 0,
        context: ExecutionContext::Thread,
        kind,
    }
}

fn switch(time: u64, prev: TaskRef, next: TaskRef) -> KernelEvent {
    at(
        time,
        EventKind::SchedSwitch {
            prev,
            prev_state: 1,
            next,
        },
    )
}

fn waking(time: u64) -> KernelEvent {
    at(
        time,
        EventKind::SchedWaking {
            task: victim(),
            target: CpuId(1),
        },
    )
}

fn timer(from: u64, to: u64) -> [KernelEvent; 2] {
    [
        at(
            from,
            EventKind::VectorEntry {
                vector: "local_timer".into(),
            },
        ),
        at(
            to,
            EventKind::VectorExit {
                vector: "local_timer".into(),
            },
        ),
    ]
}

/// The same events, each with the thread that has the CPU then, by the switches among them.
fn whole(events: &[KernelEvent]) -> Vec<KernelEvent> {
    let mut tid = 0;
    let mut whole = Vec::new();
    for event in events {
        whole.push(KernelEvent {
            tid,
            ..event.clone()
        });
        if let EventKind::SchedSwitch { next, .. } = &event.kind {
            tid = next.tid;
        }
    }
    whole
}

fn attribute(stall: &Stall, events: &[KernelEvent], rate: TickRate) -> Attribution {
    let settings = AttributorSettings {
        rate,
        virtual_machine: true,
        measured: 1,
    };
    attribute_by(&mut Attributor::new(settings), stall, events)
}

fn attribute_by(attributor: &mut Attributor, stall: &Stall, events: &[KernelEvent]) -> Attribution {
    for event in events {
        match event.kind {
            EventKind::SchedWaking { .. } => attributor.sender_event(event),
            _ => attributor.event(event),
        }
    }
    attributor.attribute_wakeup(stall, &NoNames)
}

/// (phase, name, ns) of each part.
fn split(stall: &Stall, events: &[KernelEvent]) -> Vec<(Phase, String, u64)> {
    split_as_recorded(stall, &whole(events))
}

fn split_as_recorded(stall: &Stall, events: &[KernelEvent]) -> Vec<(Phase, String, u64)> {
    attribute(stall, events, TickRate::NANOSECONDS)
        .parts
        .into_iter()
        .map(|part| {
            (
                part.phase.unwrap(),
                part.culprit.subject.name().into(),
                part.net.0,
            )
        })
        .collect()
}

#[test]
fn from_idle_the_exit_the_interrupt_and_the_dispatch_are_told_apart() {
    let mut events = vec![
        switch(100, victim(), idle()),
        at(110, EventKind::CpuIdle { state: Some(2) }),
        at(1300, EventKind::CpuIdle { state: None }),
    ];
    let [entry, exit] = timer(1320, 1500);
    events.extend([entry, waking(1400), exit, switch(1600, idle(), victim())]);
    assert_eq!(
        split(&stall(1000, 1650), &events),
        [
            (Phase::IdleExit, "idle exit".into(), 300),
            (Phase::LateTimer, "late timer".into(), 20),
            (Phase::Interrupt, "local_timer".into(), 180),
            (Phase::Dispatch, "leaving idle".into(), 100),
            (Phase::Dispatch, "return to the thread".into(), 50),
        ]
    );
}

#[test]
fn a_kernel_worker_is_named_by_its_item_before_the_wake_up_and_after_it() {
    let worker = task(60, "kworker/1:1", 120);
    let work = |time, work, function| {
        at(
            time,
            EventKind::WorkStart {
                work,
                function: KernelAddr(function),
            },
        )
    };
    let end = |time, work| at(time, EventKind::WorkEnd { work });
    let of_sixty = |event: KernelEvent| KernelEvent { tid: 60, ..event };
    let events = [
        switch(500, victim(), worker),
        of_sixty(work(1050, 1, 0x10)),
        of_sixty(waking(1300)),
        of_sixty(end(1400, 1)),
        of_sixty(work(1420, 2, 0x20)),
        of_sixty(end(1900, 2)),
        switch(2000, worker, victim()),
    ];
    let parts = attribute(&stall(1000, 2000), &events, TickRate::NANOSECONDS).parts;
    let parts_of = |part: &Part| {
        (
            part.phase.clone().unwrap(),
            part.culprit.subject.clone(),
            part.net.0,
        )
    };
    let parts_of: Vec<_> = parts.iter().map(parts_of).collect();
    let item = |function: &str| Work {
        function: Some(function.into()),
        worker: Some(Worker {
            tid: Some(60),
            ..Worker::default()
        }),
        ..Work::default()
    };
    let late = |function: &str| {
        let ran = About::Meanwhile(Meanwhile::Worked(item(function)));
        Subject::Verdict(Verdict::LateTimer, ran)
    };
    // As in a spinning probe's stalls, the worker's own activity between items counts for the longest item.
    assert_eq!(
        parts_of,
        [
            (Phase::LateTimer, late("0x20"), 50),
            (Phase::LateTimer, late("0x10"), 250),
            (Phase::RunQueue, Subject::Work(item("0x10")), 100),
            (Phase::RunQueue, Subject::Work(item("0x20")), 600),
        ]
    );
}

#[test]
fn who_runs_after_the_wake_up_is_named_by_its_urgency() {
    for (comm, prio, phase) in [
        ("urgent", 40, Phase::HigherPriority),
        ("equal", 120, Phase::RunQueue),
        ("kworker/1:0", 120, Phase::RunQueue),
    ] {
        let other = task(60, comm, prio);
        let [entry, exit] = timer(1010, 1110);
        let events = [
            switch(500, victim(), other),
            entry,
            waking(1050),
            exit,
            switch(2000, other, victim()),
        ];
        assert_eq!(
            split(&stall(1000, 2020), &events),
            [
                (Phase::LateTimer, "late timer".into(), 10),
                (Phase::Interrupt, "local_timer".into(), 100),
                (phase, comm.into(), 890),
                (Phase::Dispatch, "return to the thread".into(), 20),
            ]
        );
    }
    let events = [
        switch(900, victim(), task(7, "kworker/1:0", 120)),
        waking(1001),
    ];
    let part = &attribute(&stall(1000, 2000), &whole(&events), TickRate::NANOSECONDS).parts[1];
    let Subject::Work(work) = &part.culprit.subject else {
        panic!("{:?}", part.culprit)
    };
    let worker = work.worker.as_ref().unwrap();
    assert_eq!(
        (worker.tid, &worker.class),
        (Some(7), &Some(SchedClass::Fair(Some(0))))
    );
}

#[test]
fn a_switch_shows_the_victims_priority_as_a_wake_up_does() {
    let urgent = task(60, "urgent", 40);
    let set_aside = at(
        1100,
        EventKind::SchedSwitch {
            prev: victim(),
            prev_state: 0,
            next: urgent,
        },
    );
    let events = [
        switch(900, victim(), idle()),
        switch(1050, idle(), victim()),
        set_aside,
        switch(1500, urgent, victim()),
    ];
    let found = split(&stall(1000, 1600), &events);
    assert!(
        found.contains(&(Phase::HigherPriority, "urgent".into(), 400)),
        "{found:?}"
    );
}

#[test]
fn interrupts_in_between_have_their_own_part() {
    let events = [
        switch(100, victim(), task(60, "other", 120)),
        waking(1000),
        at(
            1100,
            EventKind::IrqEntry {
                irq: 25,
                action: "nvme0q1".into(),
            },
        ),
        at(1150, EventKind::IrqExit { irq: 25 }),
        at(1150, EventKind::SoftirqEntry { vec: 4 }),
        at(1250, EventKind::SoftirqExit { vec: 4 }),
    ];
    assert_eq!(
        split(&stall(1000, 1300), &events),
        [
            (Phase::RunQueue, "other".into(), 150),
            (Phase::Interrupt, "nvme0q1".into(), 50),
            (Phase::Interrupt, "BLOCK".into(), 100),
        ]
    );
}

#[test]
fn without_events_the_timer_is_late_and_it_is_a_guess() {
    let parts = attribute(&stall(1000, 1500), &[], TickRate::NANOSECONDS).parts;
    assert_eq!(
        (&parts[0].phase, parts[0].net.0, parts.len()),
        (&Some(Phase::LateTimer), 500, 1)
    );
    assert_eq!(parts[0].confidence, Confidence::Low);
    let attribution = attribute(&stall(1000, 1500), &[], TickRate::NANOSECONDS);
    assert_eq!((attribution.total().0, attribution.explained().0), (500, 0));
}

fn any_event() -> impl Strategy<Value = EventKind> {
    let task = prop_oneof![Just(victim()), Just(idle()), Just(task(60, "other", 90))];
    prop_oneof![
        (task.clone(), task).prop_map(|(prev, next)| EventKind::SchedSwitch {
            prev,
            prev_state: 0,
            next
        }),
        Just(EventKind::SchedWaking {
            task: victim(),
            target: CpuId(1)
        }),
        proptest::option::of(0u32..4).prop_map(|state| EventKind::CpuIdle { state }),
        (0u32..20).prop_map(|vec| EventKind::SoftirqEntry { vec }),
        (0u32..20).prop_map(|vec| EventKind::SoftirqExit { vec }),
        Just(EventKind::VectorEntry {
            vector: "local_timer".into()
        }),
        Just(EventKind::VectorExit {
            vector: "local_timer".into()
        }),
    ]
}

proptest! {
    #[test]
    fn parts_sum_to_the_stall_exactly(
        start in 0u64..2000,
        length in 0u64..3000,
        hz in 1_000_000_000u64..5_000_000_000,
        events in proptest::collection::vec((0u64..5000, any_event()), 0..40),
    ) {
        let mut events: Vec<KernelEvent> = events.into_iter().map(|(time, kind)| at(time, kind)).collect();
        events.sort_by_key(|event| event.time);
        let rate = TickRate { hz, ..TickRate::NANOSECONDS };
        let stall = stall(start, start + length);
        let sum = attribute(&stall, &events, rate).total().0;
        prop_assert_eq!(sum, rate.nanos(stall.length()).0);
    }
}

#[test]
fn an_idle_thread_that_leaves_no_records_is_not_blamed() {
    // The idle thread's exit is not recorded: the interrupt comes in another thread's time.
    let in_time_of = |tid| timer(1320, 1500).map(|event| KernelEvent { tid, ..event });
    let [entry, exit] = in_time_of(77);
    let events = [switch(100, victim(), idle()), entry, waking(1400), exit];
    assert_eq!(
        split_as_recorded(&stall(1000, 1650), &events),
        [
            (Phase::LateTimer, "late timer".into(), 320),
            (Phase::Interrupt, "local_timer".into(), 180),
            (Phase::RunQueue, "<...>".into(), 150),
        ]
    );
    // It comes in the idle thread's own time: until then the CPU idled.
    let [entry, exit] = in_time_of(0);
    let events = [switch(100, victim(), idle()), entry, waking(1400), exit];
    assert_eq!(
        split_as_recorded(&stall(1000, 1650), &events),
        [
            (Phase::IdleExit, "idle exit".into(), 320),
            (Phase::Interrupt, "local_timer".into(), 180),
            (Phase::RunQueue, "unrecorded switch".into(), 150),
        ]
    );
    // A thread leaves the CPU without a record that put it there.
    let hog = task(77, "hog", 120);
    let left = KernelEvent {
        tid: 77,
        ..switch(1500, hog, victim())
    };
    let parts_of = split_as_recorded(
        &stall(1000, 1650),
        &[switch(100, victim(), idle()), waking(1100), left.clone()],
    );
    assert_eq!(
        parts_of[1],
        (Phase::RunQueue, "unrecorded switch".into(), 400)
    );
    // The record has its name, and the scheduler's charge shows since when it ran.
    let events = [switch(100, victim(), idle()), waking(1100), left.clone()];
    let part = attribute(&stall(1000, 1650), &events, TickRate::NANOSECONDS)
        .parts
        .remove(1);
    let Subject::Verdict(_, About::Meanwhile(Meanwhile::Ran(seen))) = &part.culprit.subject else {
        panic!("{part:?}")
    };
    assert_eq!(
        (&*seen.comm, seen.tid, &seen.class),
        ("hog", Some(77), &None)
    );
    let charge = EventKind::StatRuntime {
        tid: 77,
        runtime_ns: 350,
    };
    let charged = KernelEvent {
        tid: 77,
        ..at(1499, charge)
    };
    let parts_of = split_as_recorded(
        &stall(1000, 1650),
        &[switch(100, victim(), idle()), waking(1100), charged, left],
    );
    assert_eq!(
        parts_of[1..3],
        [
            (Phase::RunQueue, "unrecorded switch".into(), 49),
            (Phase::RunQueue, "hog".into(), 351),
        ]
    );
}

#[test]
fn a_sleeper_that_was_kept_from_running_did_not_leave_an_idle_state() {
    let counted = |until: u64, times: u64| {
        let group = jitterscope_model::ThrottledGroup {
            cgroup: "/box".into(),
            quota_us: 30_000,
            period_us: 100_000,
            times,
            throttled_us: 1,
            changed: false,
        };
        jitterscope_model::DrainTurn {
            quotas_read: Ticks(until),
            members: vec![(VICTIM, vec!["/box".into()])],
            throttled: (times > 0).then_some(group).into_iter().collect(),
            ..jitterscope_model::DrainTurn::default()
        }
    };
    let parts = |times, events: &[KernelEvent]| {
        let rate = TickRate::NANOSECONDS;
        let mut attributor = Attributor::new(AttributorSettings {
            rate,
            virtual_machine: true,
            measured: 1,
        });
        attributor.quotas(&counted(1, 0), true);
        attributor.quotas(&counted(80_000_000, times), true);
        attribute_by(&mut attributor, &stall(1000, 50_000_000), events).parts
    };
    let parts_of = |times, events: &[KernelEvent]| -> Vec<(Phase, String, u64)> {
        let row = |part: Part| {
            (
                part.phase.unwrap(),
                part.culprit.subject.name().into(),
                part.net.0,
            )
        };
        parts(times, events).into_iter().map(row).collect()
    };
    let rests_on = |times, events: &[KernelEvent]| {
        let part = parts(times, events).remove(1);
        (part.confidence, part.evidence)
    };
    let woken = [
        switch(100, victim(), idle()),
        waking(2000),
        switch(49_999_000, idle(), victim()),
    ];
    assert_eq!(parts_of(1, &woken)[1].1, "CPU quota");
    assert_eq!(parts_of(1, &woken)[1].0, Phase::Withheld);
    assert_eq!(parts_of(0, &woken)[1].1, "leaving idle");
    assert_eq!(
        rests_on(1, &woken),
        (Confidence::Medium, Evidence::QuotaCount)
    );
    assert_eq!(
        rests_on(0, &woken),
        (Confidence::High, Evidence::WakeupRecords)
    );
    // It was runnable when the CPU began to idle.
    let runnable = |time, prev, next| {
        at(
            time,
            EventKind::SchedSwitch {
                prev,
                prev_state: 0,
                next,
            },
        )
    };
    let set_aside = [
        KernelEvent {
            tid: VICTIM,
            ..runnable(1500, victim(), idle())
        },
        switch(49_999_000, idle(), victim()),
    ];
    assert_eq!(
        parts_of(0, &set_aside)[1],
        (Phase::Withheld, "runnable but idle".into(), 49_997_500)
    );
    assert_eq!(
        rests_on(0, &set_aside),
        (Confidence::Low, Evidence::WakeupRecords)
    );
    // It was stopped.
    let stopped = at(
        1500,
        EventKind::SchedSwitch {
            prev: victim(),
            prev_state: 4,
            next: idle(),
        },
    );
    let stopped = [
        KernelEvent {
            tid: VICTIM,
            ..stopped
        },
        switch(49_999_000, idle(), victim()),
    ];
    assert_eq!(
        parts_of(0, &stopped)[1],
        (Phase::Withheld, "stopped by a signal".into(), 49_997_500)
    );
    assert_eq!(
        rests_on(0, &stopped),
        (Confidence::High, Evidence::WakeupRecords)
    );
}

/// Events around a wake-up that is 100 late: woken 40 after the deadline, behind thread 60, which had the CPU.
fn waits_behind_another(due: u64) -> Vec<KernelEvent> {
    let other = task(60, "other", 120);
    vec![
        switch(due - 100, idle(), other),
        waking(due + 40),
        switch(due + 90, other, victim()),
        switch(due + 150, victim(), idle()),
    ]
}

#[test]
fn wake_ups_that_are_handed_over_together_are_each_ones_own() {
    let dues = [1000, 2000, 3000];
    let alone: Vec<Attribution> = dues
        .iter()
        .map(|due| {
            attribute(
                &stall(*due, due + 100),
                &whole(&waits_behind_another(*due)),
                TickRate::NANOSECONDS,
            )
        })
        .collect();
    let settings = AttributorSettings {
        rate: TickRate::NANOSECONDS,
        virtual_machine: true,
        measured: 1,
    };
    let mut attributor = Attributor::new(settings);
    let events: Vec<KernelEvent> = dues
        .iter()
        .flat_map(|due| waits_behind_another(*due))
        .collect();
    let mut events = whole(&events);
    // Another thread's wake-up, and an old one, do not matter here.
    let mut foreign = waking(1020);
    foreign.kind = EventKind::SchedWaking {
        task: task(61, "x", 120),
        target: CpuId(1),
    };
    events.extend([foreign, waking(500)]);
    let first = attribute_by(&mut attributor, &stall(1000, 1100), &events);
    let rest = [2000, 3000].map(|due| attribute_by(&mut attributor, &stall(due, due + 100), &[]));
    let phases = |found: &Attribution| -> Vec<(Option<Phase>, u64)> {
        found
            .parts
            .iter()
            .map(|part| (part.phase.clone(), part.net.0))
            .collect()
    };
    let wanted = [
        (Some(Phase::LateTimer), 40),
        (Some(Phase::RunQueue), 50),
        (Some(Phase::Dispatch), 10),
    ];
    for (found, alone) in std::iter::once(&first).chain(&rest).zip(&alone) {
        assert_eq!(phases(found), wanted);
        assert_eq!(phases(alone), wanted);
    }
}

#[test]
fn each_part_says_how_sure_it_is_what_it_rests_on_and_where_it_lies() {
    let found = attribute(
        &stall(1000, 1100),
        &whole(&waits_behind_another(1000)),
        TickRate::NANOSECONDS,
    );
    let parts_of = |part: &Part| (part.confidence, part.placement, part.evidence.clone());
    let (inside, behind) = (Placement::Inside, Placement::Trail);
    let records = || Evidence::WakeupRecords;
    assert_eq!(
        found.parts.iter().map(parts_of).collect::<Vec<_>>(),
        [
            (Confidence::Medium, inside, records()),
            (Confidence::High, inside, records()),
            (Confidence::High, behind, records()),
        ]
    );
    // No record shows what had the CPU.
    let blind = attribute(
        &stall(1000, 1100),
        &whole(&[waking(1040)]),
        TickRate::NANOSECONDS,
    );
    assert!(
        blind
            .parts
            .iter()
            .all(|part| part.confidence == Confidence::Low),
        "{:?}",
        blind.parts
    );
}

#[test]
fn records_that_were_lost_in_it_withhold_the_verdict_on_a_wake_up() {
    let settings = AttributorSettings {
        rate: TickRate::NANOSECONDS,
        virtual_machine: true,
        measured: 1,
    };
    let mut attributor = Attributor::new(settings);
    // Each of several losses counts.
    for from in [1010, 5000] {
        attributor.lost(CpuId(1), Ticks(from), Ticks(from + 10));
    }
    let lost = |attributor: &mut Attributor, start| {
        let found = attribute_by(attributor, &stall(start, start + 100), &[]);
        found.parts[0].phase == Some(Phase::LostRecords)
    };
    assert!(lost(&mut attributor, 1000) && lost(&mut attributor, 1020));
    assert!(
        !lost(&mut attributor, 1021) && !lost(&mut attributor, 4899) && lost(&mut attributor, 4900)
    );
}
