//! Typical stalls, and their expected culprits.

use crate::common::*;
use jitterscope_attribute::{Attributor, OutsideHints, TimelineOf};
use jitterscope_model::{Confidence, Evidence, Nanos};
use jitterscope_model::{
    CpuId, CulpritKind, EventKind, ExecutionContext, Gap, KernelAddr, KernelEvent, Placement,
    SchedClass, Subject, Ticks, TimelineItem,
};

#[test]
fn a_tick_has_its_timer_function_and_a_long_lead_is_unexplained() {
    let mut a = attributor(true);
    let events = [
        enter(13_000, "local_timer"),
        hrtimer(13_500, 1),
        hrtimer_exit(15_000),
        exit(15_600, "local_timer"),
    ];
    let got = attribute(&mut a, &stall(1000, 16_000), &events);
    assert_eq!(
        shown(&got),
        [
            "unresolved/before first event 12000",
            "timer/tick_nohz_handler 2600",
            "unresolved/after last event 400"
        ]
    );
}

#[test]
fn once_learnt_the_entry_and_exit_cost_goes_to_the_interrupt() {
    let mut a = attributor(true);
    for n in 1..=8 {
        let t = n * 1_000_000;
        let events = [
            enter(t + 300 + n, "local_timer"),
            exit(t + 900, "local_timer"),
        ];
        attribute(&mut a, &stall(t, t + 1000), &events);
    }
    let t = 50_000_000;
    let events = [
        enter(t + 5000, "local_timer"),
        exit(t + 6000, "local_timer"),
    ];
    let got = attribute(&mut a, &stall(t, t + 6100), &events);
    // Smallest lead 301, smallest trail 100.
    assert_eq!(
        shown(&got),
        [
            "unresolved/before first event 4699",
            "timer/local_timer 1401"
        ]
    );
}

#[test]
fn on_bare_metal_a_lead_is_not_blamed_on_a_hypervisor() {
    let mut a = attributor(false);
    let events = [enter(13_000, "local_timer"), exit(15_000, "local_timer")];
    let got = attribute(&mut a, &stall(1000, 15_000), &events);
    assert_eq!(
        shown(&got),
        [
            "unresolved/before first event 12000",
            "timer/local_timer 2000"
        ]
    );
}

#[test]
fn a_woken_thread_names_its_waker_and_excludes_nested_interrupts() {
    let mut a = attributor(false);
    let noise = task(200, "noise", 49);
    a.sender_event(&KernelEvent {
        time: Ticks(900),
        cpu: CpuId(0),
        tid: 300,
        context: ExecutionContext::Thread,
        kind: EventKind::SchedWaking {
            task: noise,
            target: CPU,
        },
    });
    let events = [
        enter(1100, "reschedule"),
        exit(1200, "reschedule"),
        switch(1500, victim(), noise),
        at(
            3000,
            EventKind::IrqEntry {
                irq: 25,
                action: "virtio0".into(),
            },
        ),
        at(3400, EventKind::IrqExit { irq: 25 }),
        switch(9500, noise, victim()),
    ];
    let got = attribute(&mut a, &stall(1000, 10_000), &events);
    assert_eq!(
        shown(&got),
        [
            "unresolved/before first event 100",
            "ipi/reschedule 100",
            "unresolved/between events 300",
            "thread/noise 7600",
            "irq/virtio0 400",
            "unresolved/after last event 500",
        ]
    );
    let thread = &got.parts[3];
    let ran = thread.culprit.subject.task().unwrap();
    assert_eq!(
        (ran.tid, &ran.class),
        (Some(200), &Some(SchedClass::RealTime(50)))
    );
    assert_eq!(thread.gross.0, 8000);
    let sender = thread.culprit.sender.as_ref().unwrap();
    assert_eq!(
        (sender.comm.as_deref(), sender.tid, sender.cpu),
        (Some("task300"), 300, CpuId(0))
    );
}

#[test]
fn an_interrupt_as_waker_is_not_its_interrupted_thread() {
    let noise = task(200, "noise", 49);
    let name = Some("task300");
    for (context, comm, beneath) in [
        (ExecutionContext::Thread, name, None),
        (ExecutionContext::Interrupt, None, None),
        (ExecutionContext::Softirq, None, name),
    ] {
        let mut a = attributor(false);
        let waking = EventKind::SchedWaking {
            task: noise,
            target: CPU,
        };
        a.sender_event(&KernelEvent {
            time: Ticks(900),
            cpu: CpuId(0),
            tid: 300,
            context,
            kind: waking,
        });
        let events = [switch(1500, victim(), noise), switch(9000, noise, victim())];
        let got = attribute(&mut a, &stall(1000, 9500), &events);
        let sender = got
            .parts
            .iter()
            .find_map(|part| part.culprit.sender.as_ref())
            .unwrap();
        assert_eq!(
            (sender.context, sender.comm.as_deref(), sender.cpu),
            (context, comm, CpuId(0))
        );
        assert_eq!(sender.tid, if comm.is_some() { 300 } else { 0 });
        assert_eq!(sender.beneath.as_deref(), beneath);
    }
    // A spinning thread raises no softirq.
    let mut a = attributor(false);
    let (waking, context) = (
        EventKind::SchedWaking {
            task: noise,
            target: CPU,
        },
        ExecutionContext::Softirq,
    );
    a.sender_event(&KernelEvent {
        time: Ticks(900),
        cpu: CPU,
        tid: VICTIM,
        context,
        kind: waking,
    });
    let events = [switch(1500, victim(), noise), switch(9000, noise, victim())];
    let got = attribute(&mut a, &stall(1000, 9500), &events);
    let sender = got
        .parts
        .iter()
        .find_map(|part| part.culprit.sender.as_ref())
        .unwrap();
    assert_eq!((sender.tid, &sender.beneath), (0, &None));
    assert_eq!(sender.context, ExecutionContext::Softirq);
}

#[test]
fn a_kworker_is_named_by_its_work_across_a_sleep() {
    let mut a = attributor(false);
    let worker = task(50, "kworker/1:2", 120);
    a.sender_event(&KernelEvent {
        time: Ticks(10),
        cpu: CpuId(0),
        tid: 7,
        context: ExecutionContext::Thread,
        kind: EventKind::WorkQueued {
            work: 9,
            function: KernelAddr(2),
            workqueue: "mm_percpu_wq".into(),
            target: Some(CPU),
        },
    });
    let start = EventKind::WorkStart {
        work: 9,
        function: KernelAddr(2),
    };
    let worker_event = |time, kind| KernelEvent {
        tid: 50,
        ..at(time, kind)
    };
    let first = [
        switch(1000, victim(), worker),
        worker_event(1200, start),
        switch(3000, worker, victim()),
    ];
    let got = attribute(&mut a, &stall(1000, 3000), &first);
    assert_eq!(shown(&got), ["kworker/vmstat_update 2000"]);
    let Subject::Work(work) = &got.parts[0].culprit.subject else {
        panic!("{:?}", got.parts[0])
    };
    let ran_by = work.worker.as_ref().unwrap();
    assert_eq!(
        (ran_by.tid, ran_by.comm.as_deref()),
        (Some(50), Some("task50"))
    );
    assert_eq!(work.workqueue.as_deref(), Some("mm_percpu_wq"));
    assert_eq!(got.parts[0].culprit.sender.as_ref().unwrap().tid, 7);
    // The work item slept in the middle; when its worker runs again it continues.
    let second = [
        switch(7000, victim(), worker),
        worker_event(7700, EventKind::WorkEnd { work: 9 }),
        switch(8000, worker, victim()),
    ];
    let got = attribute(&mut a, &stall(7000, 8000), &second);
    assert_eq!(shown(&got), ["kworker/vmstat_update 1000"]);
}

#[test]
fn work_that_slept_when_a_run_began_is_known_when_it_is_attributed_again() {
    let worker = task(50, "kworker/1:2", 120);
    let start = EventKind::WorkStart {
        work: 9,
        function: KernelAddr(2),
    };
    let begun = [
        switch(1000, victim(), worker),
        KernelEvent {
            tid: 50,
            ..at(1200, start)
        },
        switch(3000, worker, victim()),
    ];
    let again = [
        switch(7000, victim(), worker),
        switch(8000, worker, victim()),
    ];
    let mut live = attributor(false);
    attribute(&mut live, &stall(1000, 3000), &begun);
    let sleeping = live.sleeping_works(CPU, Ticks(5000));
    assert_eq!(sleeping.len(), 1);
    assert!(live.sleeping_works(CpuId(0), Ticks(5000)).is_empty());
    let mut replayed = attributor(false);
    replayed.set_sleeping_works(&sleeping);
    for a in [&mut live, &mut replayed] {
        assert_eq!(
            shown(&attribute(a, &stall(7000, 8000), &again)),
            ["kworker/vmstat_update 1000"]
        );
    }
}

#[test]
fn a_kworker_that_was_on_another_cpu_meanwhile_ended_its_work_there() {
    let worker = task(50, "kworker/u4:1", 120);
    let worker_event = |time, kind| KernelEvent {
        tid: 50,
        ..at(time, kind)
    };
    let start = |work, function| EventKind::WorkStart {
        work,
        function: KernelAddr(function),
    };
    let begun = [
        switch(1000, victim(), worker),
        worker_event(1200, start(9, 2)),
        switch(3000, worker, victim()),
    ];
    let back = [
        switch(7000, victim(), worker),
        worker_event(7300, start(10, 8)),
        worker_event(7700, EventKind::WorkEnd { work: 10 }),
        switch(8000, worker, victim()),
    ];
    let moved = |time, to| KernelEvent {
        cpu: CpuId(0),
        ..at(
            time,
            EventKind::SchedMigrate {
                task: worker,
                from: CpuId(1 - to),
                to: CpuId(to),
            },
        )
    };
    // Elsewhere and back again; an old move does not matter.
    for (moves, expected) in [
        (
            &[moved(4000, 0), moved(6900, 1)][..],
            &["kworker/f8 1000"][..],
        ),
        (
            &[moved(500, 1)],
            &["kworker/vmstat_update 600", "kworker/f8 400"],
        ),
    ] {
        let mut a = attributor(false);
        attribute(&mut a, &stall(1000, 3000), &begun);
        for event in moves {
            a.sender_event(event);
        }
        let got = attribute(&mut a, &stall(7000, 8000), &back);
        assert_eq!(shown(&got), expected);
    }
}

#[test]
fn an_ipi_has_its_function_and_the_sender_of_that_very_call() {
    let mut a = attributor(false);
    for (time, tid, csd) in [(500, 11, 1), (600, 12, 2), (2_000_000, 13, 1)] {
        a.sender_event(&KernelEvent {
            time: Ticks(time),
            cpu: CpuId(0),
            tid,
            context: ExecutionContext::Thread,
            kind: EventKind::CsdQueued {
                target: CPU,
                function: KernelAddr(3),
                csd,
                callsite: KernelAddr(99),
            },
        });
    }
    let (function, csd) = (KernelAddr(3), 1);
    let events = [
        enter(1000, "call_function_single"),
        at(1100, EventKind::CsdEntry { function, csd }),
        at(1800, EventKind::CsdExit { function, csd }),
        exit(2000, "call_function_single"),
    ];
    let got = attribute(&mut a, &stall(1000, 2000), &events);
    assert_eq!(shown(&got), ["ipi/ipi_mb 1000"]);
    let sender = got.parts[0].culprit.sender.as_ref().unwrap();
    assert_eq!((sender.tid, sender.via.as_deref()), (11, Some("f99")));
}

#[test]
fn a_reschedule_names_the_last_who_sent_one_to_this_cpu_before_it() {
    let mut a = attributor(false);
    let sent = |time, tid, target, callback| KernelEvent {
        time: Ticks(time),
        cpu: CpuId(0),
        tid,
        context: ExecutionContext::Thread,
        kind: EventKind::IpiSendCpu {
            target,
            callsite: KernelAddr(99),
            callback: KernelAddr(callback),
        },
    };
    // The first is too early; then to another CPU, with a function, and too late.
    for event in [
        sent(400, 10, CPU, 0),
        sent(500, 11, CPU, 0),
        sent(600, 12, CpuId(7), 0),
        sent(700, 13, CPU, 3),
        sent(1500, 14, CPU, 0),
    ] {
        a.sender_event(&event);
    }
    let got = attribute(
        &mut a,
        &stall(1000, 2000),
        &[enter(1000, "reschedule"), exit(2000, "reschedule")],
    );
    assert_eq!(shown(&got), ["ipi/reschedule 1000"]);
    let sender = got.parts[0].culprit.sender.as_ref().unwrap();
    assert_eq!(
        (sender.tid, sender.cpu, sender.comm.as_deref()),
        (11, CpuId(0), Some("task11"))
    );
    assert_eq!(sender.via.as_deref(), Some("f99"));
    let got = attribute(
        &mut attributor(false),
        &stall(1000, 2000),
        &[enter(1000, "reschedule"), exit(2000, "reschedule")],
    );
    assert_eq!(
        got.parts[0].culprit.sender, None,
        "nobody was seen to send it"
    );
}

#[test]
fn a_timer_of_the_wheel_names_its_softirq() {
    let mut a = attributor(false);
    let events = [
        at(1000, EventKind::SoftirqEntry { vec: 1 }),
        at(
            1500,
            EventKind::TimerEntry {
                timer: 5,
                function: KernelAddr(5),
            },
        ),
        at(2500, EventKind::TimerExit { timer: 5 }),
        at(3000, EventKind::SoftirqExit { vec: 1 }),
        at(3000, EventKind::SoftirqEntry { vec: 9 }),
        at(4000, EventKind::SoftirqExit { vec: 9 }),
    ];
    let got = attribute(&mut a, &stall(1000, 4000), &events);
    assert_eq!(
        shown(&got),
        ["timer/clocksource_watchdog 2000", "softirq/RCU 1000"]
    );
}

#[test]
fn an_nmi_takes_its_time_from_what_it_interrupted() {
    let mut a = attributor(false);
    let events = [
        enter(1000, "local_timer"),
        at(
            1800,
            EventKind::NmiHandler {
                handler: KernelAddr(8),
                delta_ns: 500,
            },
        ),
        exit(2000, "local_timer"),
    ];
    let got = attribute(&mut a, &stall(1000, 2000), &events);
    assert_eq!(shown(&got), ["timer/local_timer 500", "nmi/f8 500"]);
    assert_eq!(got.parts[0].gross.0, 1000);
}

#[test]
fn a_page_fault_has_no_exit_so_it_lasts_to_the_end_at_medium_confidence() {
    let mut a = attributor(true);
    let events = [at(
        1400,
        EventKind::PageFault {
            user: true,
            address: 1,
            ip: 2,
        },
    )];
    let got = attribute(&mut a, &stall(1000, 5000), &events);
    assert_eq!(
        shown(&got),
        [
            "unresolved/before first event 400",
            "page_fault/page_fault_user 3600"
        ]
    );
    assert_eq!(
        got.parts[1].confidence,
        jitterscope_model::Confidence::Medium
    );
}

#[test]
fn a_fault_of_another_thread_is_that_threads_time() {
    let mut a = attributor(false);
    let other = task(200, "other", 120);
    let events = [
        switch(1000, victim(), other),
        at(
            1100,
            EventKind::PageFault {
                user: true,
                address: 1,
                ip: 2,
            },
        ),
        switch(5000, other, victim()),
    ];
    let got = attribute(&mut a, &stall(1000, 5000), &events);
    assert_eq!(shown(&got), ["thread/other 4000"]);
}

#[test]
fn a_runnable_real_time_victim_set_aside_for_a_fair_task_was_throttled() {
    let mut a = attributor(false);
    let rt_victim = task(VICTIM, "js-spin/1", 10);
    let fair = task(200, "make", 120);
    let events = [
        switch(1000, rt_victim, fair),
        switch(51_000, fair, rt_victim),
    ];
    let got = attribute(&mut a, &stall(1000, 51_000), &events);
    assert_eq!(shown(&got), ["rt_throttle/RT throttling 50000"]);
    let Subject::Throttle(let_run) = &got.parts[0].culprit.subject else {
        panic!("{:?}", got.parts[0])
    };
    assert_eq!(&*let_run.comm, "make");
}

#[test]
fn throttling_is_inherited_over_the_turns_of_a_stall() {
    let rt_victim = task(VICTIM, "js-spin/1", 10);
    let (migration, worker, fair) = (
        task(20, "migration/1", 0),
        task(50, "kworker/1:2", 120),
        task(200, "make", 120),
    );
    let start = EventKind::WorkStart {
        work: 9,
        function: KernelAddr(2),
    };
    // A worker runs before the thread that the CPU was meant for, and an urgent thread before both.
    let events = [
        switch(1000, rt_victim, migration),
        switch(1500, migration, worker),
        at(1600, start),
        at(2000, EventKind::WorkEnd { work: 9 }),
        switch(2000, worker, fair),
        at(
            3000,
            EventKind::VectorEntry {
                vector: "local_timer".into(),
            },
        ),
        at(
            3100,
            EventKind::VectorExit {
                vector: "local_timer".into(),
            },
        ),
        switch(51_000, fair, rt_victim),
    ];
    let got = attribute(&mut attributor(false), &stall(1000, 51_000), &events);
    assert_eq!(
        shown(&got),
        [
            "thread/migration/1 500",
            "rt_throttle/RT throttling 500",
            "rt_throttle/RT throttling 48900",
            "timer/local_timer 100",
        ]
    );
    // A sleeping thread is not throttled; and other threads took nothing from a spinning thread that was not runnable.
    let asleep = EventKind::SchedSwitch {
        prev: rt_victim,
        prev_state: 1,
        next: worker,
    };
    let events = [
        at(1000, asleep),
        switch(2000, worker, fair),
        switch(5000, fair, rt_victim),
    ];
    let got = attribute(&mut attributor(false), &stall(1000, 5000), &events);
    assert_eq!(shown(&got), ["unresolved/asleep in the kernel 4000"]);
}

#[test]
fn the_waker_of_an_earlier_stay_did_not_wake_the_thread_again() {
    let noise = task(200, "noise", 120);
    let waking = |time, tid, target| KernelEvent {
        cpu: CpuId(0),
        tid,
        ..at(
            time,
            EventKind::SchedWaking {
                task: noise,
                target,
            },
        )
    };
    let asleep = |time| {
        at(
            time,
            EventKind::SchedSwitch {
                prev: noise,
                prev_state: 1,
                next: victim(),
            },
        )
    };
    let mut a = attributor(false);
    a.sender_event(&waking(900, 300, CPU));
    let first = attribute(
        &mut a,
        &stall(1000, 2000),
        &[switch(1000, victim(), noise), asleep(2000)],
    );
    assert_eq!(first.parts[0].culprit.sender.as_ref().unwrap().tid, 300);
    // Meanwhile it ran elsewhere; its next wake-up is recorded for that CPU, and it moves here. A thread that moves a
    // sleeper wakes it; load balancing, a softirq, moves a thread that another thread woke.
    let moved = EventKind::SchedMigrate {
        task: noise,
        from: CpuId(0),
        to: CPU,
    };
    let mut wakes = |start, by, context| {
        a.sender_event(&KernelEvent {
            cpu: CpuId(0),
            tid: by,
            context,
            ..at(start - 100, moved.clone())
        });
        let turn = [switch(start, victim(), noise), asleep(start + 500)];
        let again = attribute(&mut a, &stall(start, start + 500), &turn);
        assert_eq!(shown(&again), ["thread/noise 500"]);
        again.parts[0].culprit.sender.as_ref().map(|by| by.tid)
    };
    assert_eq!(wakes(9000, 301, ExecutionContext::Softirq), None);
    assert_eq!(wakes(12_000, 302, ExecutionContext::Thread), Some(302));
    assert_eq!(wakes(15_000, 303, ExecutionContext::Softirq), None);
}

#[test]
fn lost_records_withhold_the_verdict_only_near_the_loss() {
    let mut a = attributor(false);
    a.lost(CPU, Ticks(1500), Ticks(1600));
    let events = [enter(1700, "local_timer"), exit(1900, "local_timer")];
    let got = attribute(&mut a, &stall(1000, 2000), &events);
    assert_eq!(shown(&got), ["loss/trace data lost 1000"]);
    let events = [enter(5000, "local_timer"), exit(5900, "local_timer")];
    let got = attribute(&mut a, &stall(5000, 6000), &events);
    assert_eq!(got.parts[0].culprit.kind(), CulpritKind::Timer);
}

#[test]
fn a_frame_that_never_ended_explains_nothing() {
    let mut a = attributor(false);
    let got = attribute(&mut a, &stall(1000, 2000), &[enter(1000, "local_timer")]);
    assert_eq!(shown(&got), ["unresolved/frame left open 1000"]);
}

#[test]
fn a_stall_without_events_is_classified_by_exclusion() {
    let classify = |virtual_machine, length, smi: Option<u64>, untraced: &[&str], others: bool| {
        let mut a = attributor(virtual_machine);
        let second = 1_000_000_000;
        let s = stall(second, second + length);
        if others {
            a.announce(
                CpuId(2),
                Gap {
                    start: Ticks(second + 100),
                    length: Ticks(length),
                },
            );
        }
        a.announce(
            CPU,
            Gap {
                start: s.start,
                length: s.length(),
            },
        );
        let untraced = untraced.iter().map(|s| (*s).to_owned()).collect();
        let got = a.attribute(
            &s,
            &OutsideHints {
                smi,
                untraced,
                ..OutsideHints::default()
            },
            &Names,
        );
        assert_eq!(got.parts[0].placement, Placement::Whole);
        shown(&got).remove(0)
    };
    assert_eq!(
        classify(true, 50_000, None, &[], false),
        "unresolved/no kernel event 50000"
    );
    assert_eq!(
        classify(true, 300_000, None, &[], true),
        "hypervisor/virtual machine paused 300000"
    );
    // Exceptions without a record may occur on several CPUs at once.
    assert_eq!(
        classify(true, 50_000, None, &[], true),
        "unresolved/no kernel event 50000"
    );
    assert_eq!(
        classify(true, 600, None, &[], false),
        "unresolved/under 1 us 600"
    );
    assert_eq!(
        classify(false, 50_000, None, &[], false),
        "unresolved/outside this kernel 50000"
    );
    assert_eq!(
        classify(false, 50_000, None, &[], true),
        "firmware/all CPUs at once 50000"
    );
    assert_eq!(
        classify(false, 50_000, Some(0), &[], true),
        "unresolved/outside this kernel 50000"
    );
    assert_eq!(
        classify(false, 50_000, Some(3), &[], true),
        "firmware/SMI 50000"
    );
    assert_eq!(
        classify(false, 50_000, None, &["PIN"], false),
        "unresolved/untraced interrupt 50000"
    );
}

#[test]
fn the_short_stall_behind_another_is_the_probes_own_bookkeeping() {
    let mut a = attributor(true);
    attribute(&mut a, &stall(1000, 9000), &[]);
    let got = attribute(&mut a, &stall(9000, 9400), &[]);
    assert_eq!(shown(&got), ["unresolved/own bookkeeping 400"]);
}

#[test]
fn events_inside_and_outside_of_stalls_are_told_apart() {
    let mut a = attributor(false);
    attribute(
        &mut a,
        &stall(1000, 2000),
        &[enter(500, "local_timer"), enter(1500, "local_timer")],
    );
    a.event(&enter(5000, "local_timer"));
    a.finish(&[(CPU, Ticks(10_000))]);
    let counts = a.events_in_gaps();
    assert_eq!((counts.events, counts.inside), (3, 1));
}

#[test]
fn a_timeline_shows_frames_nested_and_what_happened_between() {
    let noise = task(200, "noise", 120);
    let events = [
        enter(1500, "local_timer"),
        hrtimer(1600, 4),
        at(
            1650,
            EventKind::SchedWaking {
                task: noise,
                target: CPU,
            },
        ),
        at(
            1660,
            EventKind::Signal {
                tid: 200,
                sig: 34,
                code: -2,
            },
        ),
        hrtimer_exit(1700),
        exit(1800, "local_timer"),
        switch(2000, victim(), noise),
        switch(9000, noise, victim()),
    ];
    let mut senders = jitterscope_attribute::Senders::new(jitterscope_model::TickRate::NANOSECONDS);
    senders.note(&events[2]);
    senders.note(&events[3]);
    let rate = jitterscope_model::TickRate::NANOSECONDS;
    let stalled = stall(1000, 9500);
    let of = TimelineOf {
        stall: &stalled,
        spins: true,
        producer: None,
    };
    let rows =
        jitterscope_attribute::timeline_rows(&of, &with_current(&events), &senders, rate, &Names);
    let shown: Vec<String> = rows
        .iter()
        .map(|r| {
            let end = r.end.map_or("-".into(), |e| e.0.to_string());
            let item = match &r.item {
                TimelineItem::Frame {
                    culprit,
                    ended: true,
                    named_inside,
                } => {
                    let sender = culprit.sender.as_ref().map(|sender| sender.tid);
                    let subject = &culprit.subject;
                    format!(
                        "{} {} {named_inside} {sender:?}",
                        subject.kind(),
                        subject.name()
                    )
                }
                TimelineItem::Wakes {
                    comm,
                    tid,
                    target_cpu,
                } => format!("wakes {comm} {tid} {target_cpu}"),
                other => format!("{other:?}"),
            };
            format!("{}{}..{end} {item}", "  ".repeat(r.depth), r.start.0)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "500..800 timer local_timer true None",
            "  600..700 timer hrtimer_wakeup false Some(200)",
            "    650..- wakes noise 200 1",
            "1000..8000 thread noise false Some(100)",
        ]
    );
}

#[test]
fn a_thread_without_recorded_return_has_low_confidence() {
    let mut attributor = attributor(false);
    let other = task(75, "unseen", 120);
    let got = attribute(
        &mut attributor,
        &stall(1000, 5000),
        &[switch(1100, victim(), other)],
    );
    assert_eq!(shown(&got)[1], "thread/unseen 3900");
    assert_eq!(got.parts[1].confidence, jitterscope_model::Confidence::Low);
}

#[test]
fn a_worker_without_recorded_return_keeps_its_item() {
    let worker = task(50, "kworker/1:2", 120);
    let start = EventKind::WorkStart {
        work: 9,
        function: KernelAddr(2),
    };
    let events = [
        switch(1000, victim(), worker),
        KernelEvent {
            tid: 50,
            ..at(1200, start)
        },
        KernelEvent {
            tid: 50,
            ..at(8000, EventKind::WorkEnd { work: 9 })
        },
    ];
    let got = attribute(&mut attributor(false), &stall(1000, 9000), &events);
    assert_eq!(shown(&got), ["kworker/vmstat_update 8000"]);
}

#[test]
fn a_program_that_begins_in_the_middle_of_a_turn_names_it() {
    let mut a = attributor(false);
    let shell = task(300, "sh", 120);
    let program = task(300, "sha1sum", 120);
    let events = [
        switch(1000, victim(), shell),
        switch(9000, program, victim()),
    ];
    let got = attribute(&mut a, &stall(1000, 9000), &events);
    assert_eq!(shown(&got), ["thread/sha1sum 8000"]);
}

#[test]
fn an_unrecorded_switch_does_not_blame_the_previous_thread() {
    let mut a = attributor(false);
    let (seen, unseen) = (task(200, "seen", 120), task(201, "unseen", 120));
    let in_time_of = |tid, event: KernelEvent| KernelEvent { tid, ..event };
    let events = [
        switch(1000, victim(), seen),
        in_time_of(200, enter(1500, "local_timer")),
        in_time_of(200, exit(1600, "local_timer")),
        in_time_of(201, enter(7000, "local_timer")),
        in_time_of(201, exit(7100, "local_timer")),
        switch(9000, unseen, victim()),
    ];
    for event in &events {
        a.event(&in_time_of(event.tid, event.clone()));
    }
    let s = stall(1000, 9000);
    a.announce(
        CPU,
        Gap {
            start: s.start,
            length: s.length(),
        },
    );
    let got = a.attribute(&s, &OutsideHints::default(), &Names);
    assert_eq!(
        shown(&got),
        [
            "thread/seen 500",
            "timer/local_timer 200",
            "unresolved/unrecorded switch 5400",
            "thread/unseen 1900",
        ]
    );
    assert_eq!(
        a.unrecorded_switches().into_iter().collect::<Vec<_>>(),
        [(CPU, 1)]
    );
    // Its class is in the record of its leaving; before that, no record has it.
    for (end, class) in [(9000, Some(SchedClass::Fair(Some(0)))), (8999, None)] {
        let mut a = attributor(false);
        events.iter().for_each(|event| a.event(event));
        let got = a.attribute(&stall(1000, end), &OutsideHints::default(), &Names);
        assert_eq!(got.parts[3].culprit.subject.task().unwrap().class, class);
    }
}

#[test]
fn a_turn_is_parted_where_its_thread_takes_another_name() {
    let mut a = attributor(false);
    a.begin(CPU, Ticks(0));
    let (first, second) = (task(200, "first", 120), task(200, "second", 120));
    let (old, comm) = (first.comm, second.comm);
    a.sender_event(&KernelEvent {
        tid: 200,
        ..at(
            4000,
            EventKind::TaskRename {
                tid: 200,
                old,
                comm,
            },
        )
    });
    // Events after the stall do not matter.
    a.sender_event(&KernelEvent {
        tid: 200,
        ..at(
            9500,
            EventKind::TaskRename {
                tid: 200,
                old: comm,
                comm: old,
            },
        )
    });
    let events = [
        switch(1000, victim(), first),
        switch(5000, second, victim()),
    ];
    let got = attribute(&mut a, &stall(1000, 5000), &events);
    assert_eq!(shown(&got), ["thread/first 3000", "thread/second 1000"]);
}

#[test]
fn an_id_that_is_used_again_is_another_thread() {
    let mut a = attributor(false);
    let worker = task(50, "kworker/1:2", 120);
    let worker_event = |time, kind| KernelEvent {
        tid: 50,
        ..at(time, kind)
    };
    let dead = EventKind::SchedSwitch {
        prev: worker,
        prev_state: 0x80 | 0x10,
        next: victim(),
    };
    let start = EventKind::WorkStart {
        work: 9,
        function: KernelAddr(2),
    };
    let begun = [
        switch(1000, victim(), worker),
        worker_event(1200, start),
        worker_event(3000, dead),
    ];
    attribute(&mut a, &stall(1000, 3000), &begun);
    let again = [
        switch(7000, victim(), worker),
        switch(8000, worker, victim()),
    ];
    let got = attribute(&mut a, &stall(7000, 8000), &again);
    assert_eq!(shown(&got), ["kworker/kworker/1:2 1000"]);
}

#[test]
fn time_without_event_is_the_hosts_only_with_evidence() {
    const MS: u64 = 1_000_000;
    let classify = |virtual_machine, length: u64, stolen_ms: u64, faults| {
        let mut a = attributor(virtual_machine);
        let s = stall(MS, MS + length);
        a.announce(
            CPU,
            Gap {
                start: s.start,
                length: s.length(),
            },
        );
        let hints = OutsideHints {
            stolen: Nanos(stolen_ms * MS),
            faults,
            ..OutsideHints::default()
        };
        let part = a.attribute(&s, &hints, &Names).parts.remove(0);
        let name = format!("{}/{}", part.culprit.kind(), part.culprit.subject.name());
        (name, part.confidence, part.evidence)
    };
    // A debug trap of the victim: 2 us, a thousand of them.
    let (name, sure, evidence) = classify(true, 2_000, 0, 0);
    assert_eq!(name, "unresolved/no kernel event");
    assert_eq!(
        (sure, evidence),
        (Confidence::Low, Evidence::HypervisorPresent)
    );
    // It is not the host's either, just because the host took the CPU for a while at some time near it.
    assert_eq!(classify(true, 2_000, 20, 0).0, "unresolved/no kernel event");
    let (name, sure, evidence) = classify(true, 4 * MS, 10, 0);
    assert_eq!(
        (name.as_str(), sure, evidence),
        (
            "hypervisor/CPU taken",
            Confidence::Medium,
            Evidence::StealCount
        )
    );
    assert_eq!(classify(true, 34 * MS, 30, 0).1, Confidence::High);
    // More than was counted.
    assert_eq!(classify(true, 80 * MS, 10, 0).1, Confidence::Medium);
    assert_eq!(
        classify(false, 50_000, 0, 1).0,
        "unresolved/page fault without a record"
    );
}

#[test]
fn each_of_256_cpus_counts_the_others_that_stalled_with_it() {
    let mut attributor = attributor(true);
    // A machine of 256 CPUs in which every second one stalls with ours; all have thousands of earlier gaps.
    for cpu in 0..256u32 {
        for n in 0..4_096u64 {
            attributor.announce(
                CpuId(cpu),
                Gap {
                    start: Ticks(n * 100_000),
                    length: Ticks(2_000),
                },
            );
        }
        let late = if cpu % 2 == 1 { 0 } else { 50_000 };
        attributor.announce(
            CpuId(cpu),
            Gap {
                start: Ticks(500_000_000 + late),
                length: Ticks(2_000),
            },
        );
    }
    let reported = |attributor: &mut Attributor, start| {
        let stall = stall(start, start + 2_000);
        let attribution = attributor.attribute(&stall, &OutsideHints::default(), &Names);
        attribution.parts[0].others_stalled
    };
    // A CPU's nearest gap counts if it begins up to 5 us before or after.
    assert_eq!(reported(&mut attributor, 500_000_000), Some(127));
    assert_eq!(reported(&mut attributor, 500_005_000), Some(127));
    assert_eq!(reported(&mut attributor, 499_995_000), Some(127));
    assert_eq!(reported(&mut attributor, 500_005_001), Some(0));
    assert_eq!(reported(&mut attributor, 500_050_000), Some(128));
}
