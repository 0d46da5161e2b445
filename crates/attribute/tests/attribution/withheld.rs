//! A spinning victim that was runnable, or stopped, and was not allowed to run.

use crate::common::*;
use jitterscope_attribute::{Attributor, OutsideHints};
use jitterscope_model::{
    Attribution, Confidence, CpuId, DrainTurn, EventKind, Evidence, Gap, KernelEvent, Nanos,
    SchedClass, Subject, TaskRef, ThrottledGroup, Ticks, Verdict,
};

fn idle() -> TaskRef {
    task(0, "swapper/1", 120)
}

fn leaves(time: u64, prev: TaskRef, prev_state: u64, next: TaskRef) -> KernelEvent {
    at(
        time,
        EventKind::SchedSwitch {
            prev,
            prev_state,
            next,
        },
    )
}

fn throttled(until: u64, groups: &[&str]) -> DrainTurn {
    let group = |name: &&str| ThrottledGroup {
        cgroup: (*name).into(),
        quota_us: 70_000,
        period_us: 100_000,
        times: 1,
        throttled_us: 30_000,
        changed: false,
    };
    DrainTurn {
        quotas_read: Ticks(until),
        members: vec![(VICTIM, vec!["/box".into()])],
        throttled: groups.iter().map(group).collect(),
        ..DrainTurn::default()
    }
}

fn with_quota(until: u64, groups: &[&str]) -> Attributor {
    let mut a = attributor(false);
    a.quotas(&throttled(1, &[]), true);
    a.quotas(&throttled(until, groups), true);
    a
}

fn certainty(attribution: &Attribution) -> Vec<(Confidence, Evidence)> {
    attribution
        .parts
        .iter()
        .map(|part| (part.confidence, part.evidence.clone()))
        .collect()
}

#[test]
fn a_fair_victim_replaced_by_idle_was_throttled_if_a_quota_counted() {
    let mut a = with_quota(31_000_000, &["/box"]);
    let tick = [
        enter(11_000_000, "local_timer"),
        exit(11_002_000, "local_timer"),
    ];
    let events = [
        leaves(1_000_000, victim(), 0, idle()),
        tick[0].clone(),
        tick[1].clone(),
        leaves(31_000_000, idle(), 0, victim()),
    ];
    let got = attribute(&mut a, &stall(1_000_000, 31_000_000), &events);
    assert_eq!(
        shown(&got),
        ["quota/CPU quota 29998000", "timer/local_timer 2000"]
    );
    let Subject::Quota(quota) = &got.parts[0].culprit.subject else {
        panic!("{:?}", got.parts)
    };
    let limit = quota.limit.unwrap();
    assert_eq!(
        (&*quota.cgroup, limit.quota_us, limit.period_us),
        ("/box", 70_000, 100_000)
    );
    assert_eq!(
        certainty(&got)[0],
        (Confidence::Medium, Evidence::QuotaCount)
    );
    assert_eq!(a.throttled().map(|sum| sum.times).sum::<u64>(), 1);
}

#[test]
fn without_a_count_that_rose_it_is_not_explained_and_no_idle_latency() {
    let events = [
        leaves(1000, victim(), 0, idle()),
        leaves(31_000_000, idle(), 0, victim()),
    ];
    // No quota, another group's, and one that was not used up.
    for groups in [&[][..], &["/other"][..]] {
        let got = attribute(
            &mut with_quota(31_000_000, groups),
            &stall(1000, 31_000_000),
            &events,
        );
        assert_eq!(shown(&got), ["unresolved/runnable but idle 30999000"]);
        assert_eq!(certainty(&got)[0].0, Confidence::Low);
    }
    // One that was used up before.
    let got = attribute(
        &mut with_quota(900, &["/box"]),
        &stall(1000, 31_000_000),
        &events,
    );
    assert_eq!(shown(&got), ["unresolved/runnable but idle 30999000"]);
}

#[test]
fn beside_another_thread_a_quota_takes_what_was_counted() {
    let other = task(200, "make", 120);
    let events = [
        leaves(1000, victim(), 0, other),
        leaves(31_000_000, other, 0, victim()),
    ];
    let got = attribute(
        &mut with_quota(31_000_000, &["/box"]),
        &stall(1000, 31_000_000),
        &events,
    );
    // The kernel counted 30 ms: the rest of the turn belongs to its thread.
    assert_eq!(
        shown(&got),
        ["quota_beside/CPU quota 30000000", "thread/make 999000"]
    );
    assert_eq!(got.explained(), Nanos(999_000));
    assert_eq!(
        certainty(&got),
        [
            (Confidence::Medium, Evidence::SwitchRecordsWhileThrottled),
            (Confidence::High, Evidence::SwitchRecords)
        ]
    );
    let Subject::Quota(quota) = &got.parts[0].culprit.subject else {
        panic!("{:?}", got.parts)
    };
    let beside = quota.beside.as_ref().map(|task| (task.tid, &*task.comm));
    assert_eq!(beside, Some((Some(200), "make")));
    let got = attribute(
        &mut with_quota(31_000_000, &[]),
        &stall(1000, 31_000_000),
        &events,
    );
    assert_eq!(shown(&got), ["thread/make 30999000"]);
    assert_eq!(
        certainty(&got)[0],
        (Confidence::High, Evidence::SwitchRecords)
    );
}

#[test]
fn real_time_throttling_and_a_deadline_budget_are_named_on_an_idle_cpu() {
    for (prio, reported) in [
        (10, "rt_throttle/RT throttling 49999000"),
        (-1, "rt_throttle/deadline budget 49999000"),
    ] {
        let own = task(VICTIM, "js-spin/1", prio);
        let events = [
            leaves(1000, own, 0, idle()),
            leaves(50_000_000, idle(), 0, own),
        ];
        // A quota does not affect them.
        let got = attribute(
            &mut with_quota(50_000_000, &["/box"]),
            &stall(1000, 50_000_000),
            &events,
        );
        assert_eq!(shown(&got), [reported]);
    }
    // Among threads of its own class, a deadline thread is not throttled.
    let own = task(VICTIM, "js-spin/1", -1);
    let other = task(300, "dl", -1);
    let events = [leaves(1000, own, 0, other), leaves(5000, other, 1, own)];
    let got = attribute(&mut attributor(false), &stall(1000, 5000), &events);
    assert_eq!(shown(&got), ["thread/dl 4000"]);
}

#[test]
fn a_deadline_thread_that_leaves_by_itself_yielded_its_period() {
    let own = task(VICTIM, "js-spin/1", -1);
    let reported = |interrupt: u64, length: u64, preempted: u64| {
        let events = [
            switch(500, idle(), own),
            enter(interrupt, "local_timer"),
            exit(interrupt + length, "local_timer"),
            leaves(1_000_000, own, preempted, idle()),
            leaves(9_000_000, idle(), 0, own),
        ];
        let got = attribute(
            &mut attributor(false),
            &stall(1_000_000, 9_000_000),
            &events,
        );
        (shown(&got), certainty(&got)[0].0)
    };
    let yielded = (
        vec!["stopped/yielded its period 8000000".to_owned()],
        Confidence::Medium,
    );
    let used_up = (
        vec!["rt_throttle/deadline budget 8000000".to_owned()],
        Confidence::High,
    );
    assert_eq!(reported(700_000, 9_000, 0), yielded);
    assert_eq!(reported(985_000, 9_000, 0), used_up);
    // It was preempted within the kernel: such a thread does not yield.
    assert_eq!(reported(700_000, 9_000, 0x100), used_up);
    // The interrupt that let it run did not make it leave.
    let events = [
        enter(985_000, "local_timer"),
        exit(990_000, "local_timer"),
        switch(991_000, idle(), own),
        leaves(1_000_000, own, 0, idle()),
        leaves(9_000_000, idle(), 0, own),
    ];
    let got = attribute(
        &mut attributor(false),
        &stall(1_000_000, 9_000_000),
        &events,
    );
    assert_eq!((shown(&got), certainty(&got)[0].0), yielded);
}

#[test]
fn a_turn_has_the_most_urgent_class_of_its_thread() {
    // `chrt -f 99 hog` is allowed to run while real-time threads are throttled, and then has the CPU by right. A thread
    // that gives up its class during its turn also had the CPU by right.
    let own = task(VICTIM, "js-spin/1", 98);
    let (fair, urgent) = (task(200, "chrt", 120), task(200, "hog", 0));
    for (begins, ends) in [(fair, urgent), (urgent, fair)] {
        let events = [
            leaves(1000, own, 0, begins),
            leaves(900_000_000, ends, 0, own),
        ];
        let got = attribute(&mut attributor(false), &stall(1000, 900_000_000), &events);
        assert_eq!(shown(&got), [format!("thread/{} 899999000", ends.comm)]);
        let Subject::Thread(reported) = &got.parts[0].culprit.subject else {
            panic!("{:?}", got.parts)
        };
        assert_eq!(reported.class, Some(SchedClass::RealTime(99)));
    }
    // Within the stall it was not real-time.
    let events = [leaves(1000, own, 0, fair), leaves(900_000, urgent, 0, own)];
    let got = attribute(&mut attributor(false), &stall(1000, 800_000), &events);
    assert_eq!(shown(&got), ["rt_throttle/RT throttling 799000"]);
}

#[test]
fn a_stopped_victim_is_stopped_by_its_sender_whoever_has_the_cpu() {
    let other = task(200, "make", 120);
    let events = [
        leaves(1000, victim(), 4, idle()),
        leaves(400_000, idle(), 0, other),
        leaves(600_000, other, 1, idle()),
        leaves(1_000_000, idle(), 0, victim()),
    ];
    let mut a = attributor(true);
    let stop = KernelEvent {
        tid: 77,
        ..at(
            900,
            EventKind::Signal {
                tid: VICTIM,
                sig: 19,
                code: 0,
            },
        )
    };
    a.sender_event(&stop);
    let got = attribute(&mut a, &stall(1000, 1_000_000), &events);
    assert_eq!(shown(&got), ["stopped/stopped by a signal 999000"]);
    let sender = got.parts[0].culprit.sender.as_ref().unwrap();
    assert_eq!((sender.tid, sender.comm.as_deref()), (77, Some("task77")));
    // A tracer's stop is another case.
    let events = [
        leaves(1000, victim(), 8, idle()),
        leaves(1_000_000, idle(), 0, victim()),
    ];
    let got = attribute(&mut attributor(true), &stall(1000, 1_000_000), &events);
    assert_eq!(shown(&got), ["stopped/stopped by a tracer 999000"]);
}

#[test]
fn an_idle_cpu_is_no_thief_if_the_switch_away_from_the_victim_left_no_record() {
    let (start, end) = (1_000_000, 159_000_000);
    let of_idle = |event: KernelEvent| KernelEvent { tid: 0, ..event };
    let idles = [
        of_idle(enter(1_010_000, "local_timer")),
        of_idle(exit(1_012_000, "local_timer")),
    ];
    let woken = at(
        158_900_000,
        EventKind::SchedWaking {
            task: victim(),
            target: CPU,
        },
    );
    let back = leaves(158_990_000, idle(), 0, victim());
    // A real-time victim, too; and whether or not its wake-up was recorded.
    for prio in [120, 10] {
        for is_woken in [false, true] {
            let own = task(VICTIM, "js-spin/1", prio);
            let mut a = attributor(true);
            a.event(&switch(500, idle(), own));
            idles.iter().for_each(|event| a.event(event));
            if is_woken {
                let kind = EventKind::SchedWaking {
                    task: own,
                    target: CPU,
                };
                let sent = KernelEvent {
                    cpu: CpuId(0),
                    tid: 77,
                    ..at(woken.time.0, kind)
                };
                a.sender_event(&sent);
            }
            a.event(&of_idle(back.clone()));
            let stall = stall(start, end);
            let gap = Gap {
                start: stall.start,
                length: stall.length(),
            };
            a.announce(CPU, gap);
            let got = a.attribute(&stall, &OutsideHints::default(), &Names);
            let idled = got
                .parts
                .iter()
                .find(|part| part.culprit.subject == Subject::verdict(Verdict::IdleMeanwhile));
            let idled = idled.unwrap_or_else(|| panic!("{:?}", shown(&got)));
            assert!(idled.net > Nanos(150_000_000), "{:?}", shown(&got));
            assert_eq!(idled.confidence, Confidence::Low);
            let thieves = got.parts.iter().map(|part| &part.culprit.subject);
            assert!(
                !thieves.into_iter().any(is_idle_thread),
                "{:?}",
                shown(&got)
            );
        }
    }
}

#[test]
fn a_stopped_victim_that_continues_on_an_idle_cpu_waits_for_the_idle_exit() {
    let kind = EventKind::SchedWaking {
        task: victim(),
        target: CPU,
    };
    let continued = KernelEvent {
        cpu: CpuId(0),
        tid: 77,
        ..at(700_000, kind)
    };
    let other = task(200, "make", 120);
    let mut a = attributor(true);
    a.sender_event(&continued);
    let events = [
        leaves(1000, victim(), 4, other),
        // It begins to idle when the victim is already on its way.
        leaves(750_000, other, 1, idle()),
        leaves(800_000, idle(), 0, victim()),
    ];
    let got = attribute(&mut a, &stall(1000, 800_000), &events);
    assert_eq!(
        shown(&got),
        [
            "stopped/stopped by a signal 749000",
            "switch/idle exit 50000"
        ]
    );
}
