//! Followed threads that could run beside an idle CPU.

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
fn a_thread_that_idle_took_over_from_was_throttled_and_did_not_wait_for_an_idle_state() {
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
fn a_thread_that_is_woken_while_its_group_is_throttled_waits_for_the_quota() {
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
    // Without throttling, and no longer than that takes, it is the way out of idle.
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
    let told = ["wait after wake-up 30000000-90000000: hog 10000000, runnable but idle 50000000"];
    assert_eq!(episodes(0, &events), told);
    let told = ["wait after wake-up 30000000-90000000: hog 10000000, CPU quota 50000000"];
    assert_eq!(episodes(1, &events), told);
    // It was on its way to the run queue when idle took over: that is no riddle.
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
fn a_real_time_thread_set_aside_for_idle_or_a_fair_one_was_throttled_over_all_turns() {
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
    let told = ["preempted 30000000-80000000: RT throttling 1000000, RT throttling 49000000"];
    assert_eq!(episodes(1, &events), told);
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
    let told = [
        "preempted 30000000-90000000: hog 1000000, CPU quota 9000000, not seen 10000000, CPU quota 40000000",
    ];
    assert_eq!(episodes(1, &events), told);
}

#[test]
fn what_one_who_waits_is_told_of_a_turn_is_not_told_to_another_by_whose_class_it_is_another_matter()
{
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
                // Long after both were woken a fair thread is let run.
                switch(2 * MS, 1, 400, 0, HOG),
                next(4 * MS, task(HOG), first),
                next(6 * MS, first, second),
            ],
        );
        follower.finish(Ticks(7 * MS), &Names);
        let mut told = shown(&follower.take_episodes());
        told.retain(|episode| episode.starts_with("wait"));
        told.sort();
        told
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
