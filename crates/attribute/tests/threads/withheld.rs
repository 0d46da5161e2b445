//! Followed threads that were runnable while the CPU idled.

use crate::common::*;
use jitterscope_attribute::ThreadFollower;
use jitterscope_model::{
    Confidence, CpuId, DrainTurn, EventKind, Evidence, KernelEvent, StallId, TaskRef,
    ThrottledGroup, TickRate, Ticks,
};

const MS: u64 = 1_000_000;

fn counted(until: u64, times: u64) -> DrainTurn {
    let group = ThrottledGroup {
        cgroup: "/box".into(),
        quota_us: 30_000,
        period_us: 100_000,
        times,
        throttled_us: 70_000 * times,
        changed: false,
    };
    DrainTurn {
        quotas_read: Ticks(until),
        members: vec![(A, vec!["/box".into()])],
        throttled: (times > 0).then_some(group).into_iter().collect(),
        ..DrainTurn::default()
    }
}

/// Follows A through `events`, after the counts were read.
fn with_counts(times: u64, events: &[KernelEvent]) -> ThreadFollower {
    let mut follower = ThreadFollower::new(settings());
    follower.measure(Ticks(0), Ticks(u64::MAX));
    follow(&mut follower, A);
    follower.quotas(&counted(1, 0));
    follower.quotas(&counted(200 * MS, times));
    for event in events {
        follower.event(event, &Names);
    }
    follower.finish(Ticks(200 * MS), &Names);
    follower
}

fn episodes(times: u64, events: &[KernelEvent]) -> Vec<String> {
    shown(&with_counts(times, events).take_episodes())
}

#[test]
fn a_thread_replaced_by_idle_was_throttled_not_in_an_idle_exit() {
    let events = [
        switch(10, 1, 0, 0, A),
        switch(30 * MS, 1, A, 0, 0),
        switch(100 * MS, 1, 0, 0, A),
    ];
    assert_eq!(
        episodes(1, &events),
        ["preempted 30000000-100000000: CPU quota 70000000"]
    );
    assert_eq!(
        episodes(0, &events),
        ["preempted 30000000-100000000: runnable but idle 70000000"]
    );
    let episode = &with_counts(1, &events).take_episodes()[0];
    let (_, attribution) = episode.as_stall(StallId(0), TickRate::NANOSECONDS);
    let part = &attribution.parts[0];
    assert_eq!(
        (part.confidence, &part.evidence),
        (Confidence::Medium, &Evidence::QuotaCount)
    );
}

#[test]
fn a_thread_woken_in_a_throttled_group_waits_for_the_quota() {
    let wait = |until| {
        [
            switch(10, 1, 0, 0, A),
            switch(20 * MS, 1, A, 1, 0),
            waking(30 * MS, 0, B, A, 1),
            switch(until, 1, 0, 0, A),
        ]
    };
    assert_eq!(
        episodes(1, &wait(90 * MS)),
        ["wait after wake-up 30000000-90000000: CPU quota 60000000"]
    );
    // Without throttling, and up to the maximum length, it is the idle exit.
    assert_eq!(
        episodes(0, &wait(90 * MS)),
        ["wait after wake-up 30000000-90000000: idle exit 60000000"]
    );
    assert_eq!(
        episodes(1, &wait(30 * MS + 40_000)),
        ["wait after wake-up 30000000-30040000: idle exit 40000"]
    );
}

#[test]
fn idle_that_takes_over_long_after_a_wake_up_is_no_way_out_of_idle() {
    let events = [
        switch(10, 1, 0, 0, A),
        switch(20 * MS, 1, A, 1, HOG),
        waking(30 * MS, 0, B, A, 1),
        switch(40 * MS, 1, HOG, 1, 0),
        switch(90 * MS, 1, 0, 0, A),
    ];
    let reported =
        ["wait after wake-up 30000000-90000000: hog 10000000, runnable but idle 50000000"];
    assert_eq!(episodes(0, &events), reported);
    let reported = ["wait after wake-up 30000000-90000000: CPU quota 10000000, CPU quota 50000000"];
    assert_eq!(
        episodes(1, &events),
        reported,
        "it was throttled beside the hog"
    );
    // It was on its way to the run queue when the CPU began to idle: this is explained.
    let events = [
        switch(10, 1, 0, 0, A),
        switch(20 * MS, 1, A, 1, HOG),
        waking(30 * MS, 0, B, A, 1),
        switch(30 * MS + 2_000, 1, HOG, 1, 0),
        switch(30 * MS + 30_000, 1, 0, 0, A),
    ];
    assert_eq!(
        episodes(0, &events),
        ["wait after wake-up 30000000-30030000: hog 2000, idle exit 28000"]
    );
}

#[test]
fn a_real_time_thread_replaced_by_idle_or_fair_was_throttled() {
    let fifo = TaskRef {
        prio: 10,
        ..task(A)
    };
    let between = |time, prev, next| {
        at(
            time,
            1,
            A,
            EventKind::SchedSwitch {
                prev,
                prev_state: 0,
                next,
            },
        )
    };
    let worker = task(400);
    let events = [
        between(10, task(0), fifo),
        between(30 * MS, fifo, worker),
        KernelEvent {
            tid: 400,
            ..between(31 * MS, worker, task(0))
        },
        KernelEvent {
            tid: 0,
            ..between(80 * MS, task(0), fifo)
        },
    ];
    let reported = ["preempted 30000000-80000000: RT throttling 1000000, RT throttling 49000000"];
    assert_eq!(episodes(1, &events), reported);
}

#[test]
fn a_thread_that_was_moved_waits_on_as_it_did() {
    let events = [
        switch(10, 1, 0, 0, A),
        switch(30 * MS, 1, A, 0, HOG),
        switch(31 * MS, 1, HOG, 1, 0),
        migrate(40 * MS, 0, A, 1, 0),
        switch(50 * MS, 0, B, 1, 0),
        switch(90 * MS, 0, 0, 0, A),
    ];
    let reported = [
        "preempted 30000000-90000000: CPU quota 1000000, CPU quota 9000000, not seen 10000000, CPU quota 40000000",
    ];
    assert_eq!(episodes(1, &events), reported);
}

#[test]
fn a_turn_has_a_verdict_for_each_waiters_own_class() {
    let urgent = TaskRef {
        prio: 50,
        ..task(B)
    };
    let turns = |first: TaskRef, second: TaskRef| {
        let next = |time, prev, next| {
            at(
                time,
                1,
                0,
                EventKind::SchedSwitch {
                    prev,
                    prev_state: 0,
                    next,
                },
            )
        };
        let wakes = |task| {
            at(
                20_000,
                0,
                0,
                EventKind::SchedWaking {
                    task,
                    target: CpuId(1),
                },
            )
        };
        let mut follower = run(
            &[A, B],
            &[
                switch(10, 1, 0, 1, 400),
                wakes(task(A)),
                wakes(urgent),
                // Long after both were woken, a fair thread is allowed to run.
                switch(2 * MS, 1, 400, 0, HOG),
                next(4 * MS, task(HOG), first),
                next(6 * MS, first, second),
            ],
        );
        follower.finish(Ticks(7 * MS), &Names);
        let mut reported = shown(&follower.take_episodes());
        reported.retain(|episode| episode.starts_with("wait"));
        reported.sort();
        reported
    };
    let before = "wait after wake-up 20000-";
    assert_eq!(
        turns(task(A), urgent),
        [
            format!("{before}4000000: kworker/1:0 1980000, hog 2000000"),
            format!(
                "{before}6000000: kworker/1:0 1980000, RT throttling 2000000, RT throttling 2000000"
            ),
        ]
    );
    assert_eq!(
        turns(urgent, task(A)),
        [
            format!("{before}4000000: kworker/1:0 1980000, RT throttling 2000000"),
            format!("{before}6000000: kworker/1:0 1980000, hog 2000000, b 2000000"),
        ]
    );
}

/// Follows A, whose group's freezer was written to in the second turn.
fn with_freezer(written: bool, events: &[KernelEvent]) -> Vec<String> {
    let mut follower = ThreadFollower::new(settings());
    follower.measure(Ticks(0), Ticks(u64::MAX));
    follow(&mut follower, A);
    for (until, frozen) in [(1, false), (300 * MS, false), (350 * MS, written)] {
        follower.quotas(&DrainTurn {
            quotas_read: Ticks(until),
            frozen: if frozen { vec![A] } else { Vec::new() },
            ..DrainTurn::default()
        });
    }
    for event in events {
        follower.event(event, &Names);
    }
    follower.finish(Ticks(900 * MS), &Names);
    shown(&follower.take_episodes())
}

#[test]
fn sleepers_at_a_freezer_write_are_frozen_until_another_wakes_them() {
    let call = |time, exits| {
        let vector = "reschedule".into();
        let kind = match exits {
            false => EventKind::VectorEntry { vector },
            true => EventKind::VectorExit { vector },
        };
        at(time, 1, A, kind)
    };
    // It sleeps from its interrupt on, in a state that differs between cgroup versions 1 and 2.
    let events = |slept: u64, waker: i32, state: u64| {
        [
            switch(10, 1, 0, 0, A),
            call(310 * MS, false),
            call(310 * MS + 1000, true),
            switch(slept, 1, A, state, 0),
            waking(700 * MS, 0, waker, A, 1),
            switch(700 * MS, 1, 0, 0, A),
        ]
    };
    let at_once = 310 * MS + 4000;
    let frozen = "stopped 310004000-700000000: frozen by a control group 389996000".to_owned();
    let interrupt = "interrupted 310000000-310001000: reschedule 1000".to_owned();
    for state in [1, 2] {
        assert_eq!(
            with_freezer(true, &events(at_once, B, state)),
            [interrupt.clone(), frozen.clone()]
        );
    }
    // No write; it continued for a while first; or a thread of its own process wakes it.
    for (written, slept, waker) in [
        (false, at_once, B),
        (true, 311 * MS, B),
        (true, at_once, A),
        (true, at_once, 0),
    ] {
        let reported = with_freezer(written, &events(slept, waker, 1));
        let only = std::slice::from_ref(&interrupt);
        assert_eq!(reported, only, "{written} {slept} {waker}");
    }
    // An earlier sleep is a sleep.
    let before: Vec<KernelEvent> = events(at_once, B, 1)
        .into_iter()
        .map(|event| KernelEvent {
            time: Ticks(event.time.0.saturating_sub(200 * MS)),
            ..event
        })
        .collect();
    assert_eq!(with_freezer(true, &before).len(), 1);
}

/// Version 1 leaves a sleeper where it is, and whoever thaws it wakes it.
#[test]
fn a_sleeper_that_is_frozen_in_place_is_stopped_from_then_on() {
    let shown_of = |held: &[bool], waker: i32| {
        let mut follower = ThreadFollower::new(settings());
        follower.measure(Ticks(0), Ticks(u64::MAX));
        follow(&mut follower, A);
        let events = [
            switch(10, 1, 0, 0, A),
            switch(100 * MS, 1, A, 1, 0),
            waking(700 * MS, 0, waker, A, 1),
            switch(700 * MS, 1, 0, 0, A),
        ];
        for (at, held) in [1, 200, 300, 400]
            .into_iter()
            .zip([&[false], held].concat())
        {
            let tids = if at > 1 { vec![A] } else { Vec::new() };
            follower.quotas(&DrainTurn {
                quotas_read: Ticks(at * MS),
                held: if held { tids.clone() } else { Vec::new() },
                frozen: tids,
                ..DrainTurn::default()
            });
        }
        events
            .iter()
            .for_each(|event| follower.event(event, &Names));
        let accounts = follower.finish(Ticks(900 * MS), &Names);
        let sums = (accounts[0].blocked_ns.0 / MS, accounts[0].stopped_ns.0 / MS);
        (shown(&follower.take_episodes()), sums)
    };
    let frozen = "stopped 400000000-700000000: frozen by a control group 300000000".to_owned();
    assert_eq!(
        shown_of(&[false, false, true], B),
        (vec![frozen], (300, 300))
    );
    // Thawed again, and woken by its own process or by an interrupt.
    assert_eq!(shown_of(&[false, true, false], B), (vec![], (600, 0)));
    assert_eq!(shown_of(&[false, false, true], A), (vec![], (600, 0)));
    assert_eq!(shown_of(&[false, false, true], 0), (vec![], (600, 0)));
}
