//! The states of a followed thread, and the reports about them.

use crate::common::*;
use jitterscope_attribute::{FollowerSettings, Following, NameResolver, Start, ThreadFollower};
use jitterscope_model::{
    Comm, EventKind, Evidence, ExecutionContext, KernelAddr, KernelEvent, Name, Nanos, StoppedBy,
    TaskIdentity, ThreadRef, Ticks,
};
use std::cell::Cell;

#[test]
fn a_preempted_thread_waits_behind_whoever_was_put_in_its_place() {
    let events = [
        switch(100, 1, 0, 0, A),
        switch(1000, 1, A, 0, HOG),
        switch(1500, 1, HOG, 1, A),
        switch(2000, 1, A, 1, 0),
    ];
    let mut follower = run(&[A], &events);
    let accounts = follower.finish(Ticks(3000), &Names);
    assert_eq!(
        shown(&follower.take_episodes()),
        ["preempted 1000-1500: hog 500"]
    );
    let a = &accounts[0];
    assert_eq!(
        (a.running_ns, a.waiting_ns, a.preempted_ns),
        (Nanos(1400), Nanos(500), Nanos(500))
    );
    // Its state before its first record is unknown; after it went to sleep it slept.
    assert_eq!((a.unknown_ns, a.blocked_ns), (Nanos(100), Nanos(1000)));
    assert_eq!(
        (
            a.runs,
            a.voluntary_switches,
            a.involuntary_switches,
            a.migrations
        ),
        (2, 1, 1, 0)
    );
    let hog = &a.ran_instead[0];
    assert_eq!(
        (&*hog.subject.name(), hog.count, hog.min_ns, hog.max_ns),
        ("hog", 1, Nanos(500), Nanos(500))
    );
}

#[test]
fn a_late_tick_lowers_the_confidence_of_the_turn_before_it() {
    const PERIOD: u64 = 4_000_000;
    let sure = |virtual_machine, late: u64| {
        let mut follower = ThreadFollower::new(FollowerSettings {
            virtual_machine,
            stacks: false,
            ..settings()
        });
        follower.measure(Ticks(0), Ticks(u64::MAX));
        follow(&mut follower, A);
        let mut events = vec![switch(100, 1, 0, 0, A), switch(1000, 1, A, 0, HOG)];
        for n in 1..=15 {
            let came = n * PERIOD + 1_000_000 + if n == 14 { late } else { 1000 };
            let [enter, exit] = tick(came, came + 1000, 1, HOG);
            let function = EventKind::HrtimerEntry {
                hrtimer: 77,
                function: KernelAddr(1),
                now: Nanos(came + 200),
            };
            let ended = EventKind::HrtimerExit { hrtimer: 77 };
            let inner = [
                at(came + 200, 1, HOG, function),
                at(came + 900, 1, HOG, ended),
            ];
            events.extend([enter].into_iter().chain(inner).chain([exit]));
        }
        events.extend([
            switch(16 * PERIOD, 1, HOG, 1, A),
            switch(17 * PERIOD, 1, A, 1, 0),
        ]);
        for event in &events {
            follower.event(event, &Names);
        }
        follower.finish(Ticks(18 * PERIOD), &Names);
        let episodes = follower.take_episodes();
        let of_hog = episodes[0].slices.iter().filter(|slice| {
            slice.culprit.subject.name() == "hog" && slice.evidence == Evidence::LateInterruptInVm
        });
        of_hog
            .map(|slice| (slice.start.0, slice.end.0))
            .collect::<Vec<_>>()
    };
    let came = 14 * PERIOD + 2_000_000;
    assert_eq!(sure(true, 1_000_000), [(came - 999_000, came)]);
    assert_eq!(sure(true, 1000), []);
    assert_eq!(sure(false, 1_000_000), []);
}

/// The scheduler charges a thread up to each tick and when it leaves, without the time that the host reports as stolen.
#[test]
fn time_beyond_the_schedulers_charge_is_less_sure_and_no_other() {
    const US: u64 = 1000;
    let charge = |time, cpu, tid, ran: u64| {
        let kind = EventKind::StatRuntime {
            tid,
            runtime_ns: ran,
        };
        at(time, cpu, tid, kind)
    };
    let tick_with = |time, ran: u64| {
        let [enter, exit] = tick(time, time + 20 * US, 1, HOG);
        vec![enter, charge(time + 10 * US, 1, HOG, ran), exit]
    };
    let sure = |virtual_machine, events: &[Vec<KernelEvent>]| {
        let mut follower = ThreadFollower::new(FollowerSettings {
            virtual_machine,
            stacks: false,
            ..settings()
        });
        follower.measure(Ticks(0), Ticks(u64::MAX));
        follow(&mut follower, A);
        for event in events.iter().flatten() {
            follower.event(event, &Names);
        }
        follower.finish(Ticks(90_000 * US), &Names);
        let episodes = follower.take_episodes();
        let slices = episodes.iter().flat_map(|episode| &episode.slices);
        let of_hog = slices.filter(|slice| slice.culprit.subject.name() == "hog");
        of_hog
            .map(|slice| {
                let perhaps = slice.evidence == Evidence::UnchargedInVm;
                (slice.start.0 / US, slice.end.0 / US, perhaps)
            })
            .collect::<Vec<_>>()
    };
    let begins = vec![switch(100, 1, 0, 0, A), switch(1000 * US, 1, A, 0, HOG)];
    // Charged in full up to the first tick, for 1 of 4 ms up to the second, and for nothing up to the end.
    let turn = [
        begins.clone(),
        tick_with(4000 * US, 3000 * US),
        tick_with(8000 * US, 1000 * US),
        vec![switch(9000 * US, 1, HOG, 1, A)],
    ];
    let split = [
        (1000, 4000, false),
        (4020, 5020, false),
        (5020, 8000, true),
        (8020, 9000, true),
    ];
    assert_eq!(sure(true, &turn), split);
    assert!(sure(false, &turn).iter().all(|(.., perhaps)| !perhaps));
    // Without charges nothing is known, and a real-time thread need not be charged.
    let uncharged = [begins.clone(), vec![switch(9000 * US, 1, HOG, 1, A)]];
    assert_eq!(sure(true, &uncharged), [(1000, 9000, false)]);
    // The record of the switch away from the hog is missing: it is charged up to its last record only.
    let unseen = [
        begins,
        vec![charge(1017 * US, 1, HOG, 17 * US)],
        vec![switch(4900 * US, 1, 0, 0, A)],
    ];
    assert_eq!(sure(true, &unseen), [(1000, 1017, false)]);
}

/// Assigns every thread to one process.
struct Learns(Cell<Option<i32>>);

impl NameResolver for Learns {
    fn function(&self, addr: KernelAddr) -> Name {
        Names.function(addr)
    }

    fn comm(&self, tid: i32) -> Option<Name> {
        Names.comm(tid)
    }

    fn identity(&self, _: i32, _: Comm) -> TaskIdentity {
        TaskIdentity {
            tgid: self.0.get(),
            ..TaskIdentity::default()
        }
    }
}

#[test]
fn a_late_fact_about_a_thread_applies_to_later_turns() {
    let names = Learns(Cell::new(None));
    let mut follower = run(&[A], &[switch(100, 1, 0, 0, A)]);
    for (start, process) in [(1000, None), (2000, Some(7))] {
        names.0.set(process);
        for event in [
            switch(start, 1, A, 0, HOG),
            switch(start + 500, 1, HOG, 1, A),
        ] {
            follower.event(&event, &names);
        }
    }
    follower.finish(Ticks(3000), &names);
    let episodes = follower.take_episodes();
    let process = |of: usize| {
        episodes[of].slices[0]
            .culprit
            .subject
            .task()
            .and_then(|task| task.tgid)
    };
    assert_eq!([process(0), process(1)], [None, Some(7)]);
}

#[test]
fn a_woken_thread_waits_behind_the_running_turn_with_its_waker() {
    let work = EventKind::WorkStart {
        work: 7,
        function: KernelAddr(2),
    };
    let done = EventKind::WorkEnd { work: 7 };
    let events = [
        switch(10, 1, A, 1, 0),
        switch(100, 1, 0, 0, 400),
        at(150, 1, 400, work),
        waking(1000, 0, B, A, 1),
        at(1400, 1, 400, done),
        switch(1500, 1, 400, 1, A),
    ];
    let mut follower = run(&[A], &events);
    let accounts = follower.finish(Ticks(2000), &Names);
    let episodes = follower.take_episodes();
    // The worker's turn has the name of its work item until that ends, and then its own.
    assert_eq!(
        shown(&episodes),
        ["wait after wake-up 1000-1500: vmstat_update 500"]
    );
    assert_eq!(episodes[0].waker.as_ref().map(|waker| waker.tid), Some(B));
    assert_eq!(accounts[0].blocked_ns, Nanos(990));
    assert_eq!(
        (accounts[0].waiting_ns, accounts[0].preempted_ns),
        (Nanos(500), Nanos(0))
    );
}

#[test]
fn a_migrated_worker_ended_its_item_on_the_other_cpu() {
    let work = EventKind::WorkStart {
        work: 7,
        function: KernelAddr(2),
    };
    let events = |moves: &[KernelEvent]| {
        let mut events = vec![
            switch(100, 1, 0, 0, 400),
            at(150, 1, 400, work.clone()),
            switch(200, 1, 400, 1, A),
        ];
        events.extend_from_slice(moves);
        events.extend([switch(1000, 1, A, 0, 400), switch(1500, 1, 400, 1, A)]);
        events
    };
    let behind = |events: &[KernelEvent]| {
        let mut follower = run(&[A], events);
        follower.finish(Ticks(2000), &Names);
        shown(&follower.take_episodes())
    };
    assert_eq!(
        behind(&events(&[])),
        ["preempted 1000-1500: vmstat_update 500"]
    );
    let moves = [migrate(300, 0, 400, 1, 0), migrate(900, 0, 400, 0, 1)];
    assert_eq!(
        behind(&events(&moves)),
        ["preempted 1000-1500: kworker/1:0 500"]
    );
}

#[test]
fn an_item_that_sleeps_and_goes_on_within_a_wait_ends_once() {
    let start = |work, function| EventKind::WorkStart {
        work,
        function: KernelAddr(function),
    };
    let events = [
        switch(10, 1, 0, 0, A),
        // A waits from here on. The worker begins an item, sleeps, ends it, and later runs another.
        switch(100, 1, A, 0, 400),
        at(100, 1, 400, start(7, 2)),
        switch(200, 1, 400, 1, HOG),
        switch(300, 1, HOG, 0, 400),
        at(400, 1, 400, EventKind::WorkEnd { work: 7 }),
        switch(400, 1, 400, 1, HOG),
        switch(500, 1, HOG, 0, 400),
        at(500, 1, 400, start(8, 9)),
        at(600, 1, 400, EventKind::WorkEnd { work: 8 }),
        switch(700, 1, 400, 1, A),
    ];
    let mut follower = run(&[A], &events);
    follower.finish(Ticks(800), &Names);
    assert_eq!(
        shown(&follower.take_episodes()),
        ["preempted 100-700: vmstat_update 100, hog 100, vmstat_update 100, hog 100, f9 200"]
    );
}

#[test]
fn a_thread_woken_under_a_running_work_item_waits_behind_it() {
    let work = EventKind::WorkStart {
        work: 7,
        function: KernelAddr(2),
    };
    let events = [
        switch(10, 1, A, 1, 0),
        switch(100, 1, 0, 0, 400),
        at(150, 1, 400, work),
        switch(200, 1, 400, 1, 0),
        switch(900, 1, 0, 0, 400),
        waking(1000, 0, B, A, 1),
        switch(1500, 1, 400, 1, A),
    ];
    let mut follower = run(&[A], &events);
    follower.finish(Ticks(2000), &Names);
    assert_eq!(
        shown(&follower.take_episodes()),
        ["wait after wake-up 1000-1500: vmstat_update 500"]
    );
}

#[test]
fn a_wait_that_moves_to_another_cpu_is_reported_leg_by_leg() {
    let events = [
        switch(10, 1, A, 1, HOG),
        switch(20, 0, 0, 0, B),
        waking(100, 0, B, A, 1),
        migrate(400, 0, A, 1, 0),
        switch(600, 0, B, 0, A),
    ];
    let mut follower = run(&[A], &events);
    let accounts = follower.finish(Ticks(700), &Names);
    let episodes = follower.take_episodes();
    assert_eq!(
        shown(&episodes),
        ["wait after wake-up 100-600: hog 300, b 200"]
    );
    assert_eq!(episodes[0].migrated_from.map(|cpu| cpu.0), Some(1));
    assert_eq!(accounts[0].migrations, 1);
    let cpus: Vec<(u32, u64)> = accounts[0]
        .cpus
        .iter()
        .map(|share| (share.cpu.0, share.running_ns.0))
        .collect();
    assert_eq!(cpus, [(0, 100), (1, 10)]);
}

#[test]
fn interrupts_are_reported_and_stay_part_of_running() {
    let mut events = vec![switch(0, 1, 0, 0, A)];
    events.extend(tick(1000, 1200, 1, A));
    // Directly after it: one stall.
    events.extend([
        at(1205, 1, A, EventKind::SoftirqEntry { vec: 1 }),
        at(1300, 1, A, EventKind::SoftirqExit { vec: 1 }),
    ]);
    events.extend(tick(5000, 5100, 1, A));
    // In another thread's time.
    events.push(switch(6000, 1, A, 1, HOG));
    events.extend(tick(6100, 6200, 1, HOG));
    let mut follower = run(&[A], &events);
    let accounts = follower.finish(Ticks(7000), &Names);
    let reported = shown(&follower.take_episodes());
    assert_eq!(
        reported,
        [
            "interrupted 1000-1300: local_timer 200, context switch 5, TIMER 95",
            "interrupted 5000-5100: local_timer 100",
        ]
    );
    assert_eq!(accounts[0].running_ns, Nanos(6000));
    assert_eq!(accounts[0].interrupted_ns, Nanos(395));
    let timer = &accounts[0].ran_instead[0];
    assert_eq!(
        (timer.count, timer.min_ns, timer.max_ns),
        (2, Nanos(100), Nanos(200))
    );
}

#[test]
fn an_nmi_interrupts_a_thread_once_alone_or_nested() {
    let nmi = |time, delta_ns| KernelEvent {
        context: ExecutionContext::Nmi,
        ..at(
            time,
            1,
            A,
            EventKind::NmiHandler {
                handler: KernelAddr(7),
                delta_ns,
            },
        )
    };
    let [entry, exit] = tick(1000, 1200, 1, A);
    let events = [
        switch(0, 1, 0, 0, A),
        entry,
        nmi(1100, 40),
        exit,
        nmi(5000, 30),
        switch(6000, 1, A, 1, HOG),
    ];
    let mut follower = run(&[A], &events);
    let accounts = follower.finish(Ticks(7000), &Names);
    let reported = shown(&follower.take_episodes());
    assert_eq!(
        reported,
        [
            "interrupted 1000-1200: local_timer 60, f7 40, local_timer 100",
            "interrupted 4970-5000: f7 30"
        ]
    );
    assert_eq!(
        (accounts[0].running_ns, accounts[0].interrupted_ns),
        (Nanos(6000), Nanos(230))
    );
}

#[test]
fn a_turn_that_interrupts_part_counts_once() {
    let mut events = vec![switch(0, 1, 0, 0, A), switch(1000, 1, A, 0, HOG)];
    events.extend(tick(1100, 1200, 1, HOG));
    events.push(switch(2000, 1, HOG, 0, A));
    let mut follower = run(&[A], &events);
    let accounts = follower.finish(Ticks(2500), &Names);
    let hog = accounts[0]
        .ran_instead
        .iter()
        .find(|ran| ran.subject.name() == "hog")
        .unwrap();
    assert_eq!((hog.count, hog.total_ns), (1, Nanos(900)));
}

#[test]
fn interrupts_show_that_a_thread_without_switches_runs() {
    let mut follower = run(&[A], &tick(1000, 1010, 1, A));
    let accounts = follower.finish(Ticks(2000), &Names);
    assert_eq!(
        (accounts[0].running_ns, accounts[0].unknown_ns),
        (Nanos(2000), Nanos(0))
    );
}

#[test]
fn a_sleeper_that_never_wakes_is_blocked_if_its_sleep_was_seen() {
    let mut follower = run(&[], &[]);
    for (tid, start) in [(A, Start::Asleep), (B, Start::Unknown)] {
        let thread = jitterscope_model::ThreadRef {
            tid,
            comm: comm(tid),
        };
        follower.follow(
            jitterscope_attribute::Following {
                thread,
                role: None,
                start,
            },
            Ticks(0),
        );
    }
    let accounts = follower.finish(Ticks(2000), &Names);
    assert_eq!(
        (accounts[0].blocked_ns, accounts[1].unknown_ns),
        (Nanos(2000), Nanos(2000))
    );
}

#[test]
fn threads_are_followed_from_birth_and_keep_their_account() {
    let born = EventKind::TaskNew {
        tid: B,
        comm: comm(A),
        thread: true,
        into_cgroup: false,
    };
    let events = [
        switch(0, 0, 0, 0, A),
        at(100, 0, A, born),
        switch(150, 1, 0, 0, B),
        switch(900, 1, B, 16, 0),
        // Its id is reused by an unrelated thread: not followed.
        switch(950, 1, 0, 0, B),
    ];
    let mut follower = run(&[A], &events);
    let accounts = follower.finish(Ticks(1000), &Names);
    let b = accounts.iter().find(|account| account.tid == B).unwrap();
    assert!(b.appeared && b.exited);
    assert_eq!((b.from, b.until), (Ticks(100), Ticks(900)));
    assert_eq!((b.waiting_ns, b.running_ns), (Nanos(50), Nanos(750)));
}

#[test]
fn a_thread_that_comes_by_exec_is_followed_from_then_on() {
    let follower = |events: &[jitterscope_model::KernelEvent]| {
        let names = vec![comm(B)];
        let mut follower = ThreadFollower::new(FollowerSettings {
            names,
            ..settings()
        });
        follower.measure(Ticks(0), Ticks(u64::MAX));
        events
            .iter()
            .for_each(|event| follower.event(event, &Names));
        follower
    };
    let renamed = |time| {
        at(
            time,
            1,
            B,
            EventKind::TaskRename {
                tid: B,
                old: comm(HOG),
                comm: comm(B),
            },
        )
    };
    let rest = [
        switch(500, 1, B, 1, 0),
        waking(9_000, 0, A, B, 1),
        switch(9_100, 1, 0, 0, B),
        switch(9_200, 1, B, 16, 0),
    ];
    // First it runs its creator's program, under that name.
    let mut by_exec = follower(&[[renamed(100)].as_slice(), &rest].concat());
    let accounts = by_exec.finish(Ticks(10_000), &Names);
    assert_eq!(accounts.len(), 1);
    let b = &accounts[0];
    assert!(b.appeared && b.exited);
    assert_eq!((b.from, b.until), (Ticks(100), Ticks(9_200)));
    assert_eq!(
        (b.running_ns, b.blocked_ns, b.waiting_ns),
        (Nanos(500), Nanos(8_500), Nanos(100))
    );
    assert_eq!((by_exec.met_late(), by_exec.missed()), (0, 0));

    // Without the record, the switch away from it shows the name, and is counted as late.
    let mut late = follower(&rest);
    let accounts = late.finish(Ticks(10_000), &Names);
    assert_eq!(
        (accounts[0].from, accounts[0].until),
        (Ticks(500), Ticks(9_200))
    );
    assert_eq!((late.met_late(), late.missed()), (1, 0));

    // A thread that ends before anything else of it is seen is counted, too.
    let mut missed = follower(&[switch(500, 1, B, 16, 0)]);
    assert!(missed.finish(Ticks(10_000), &Names).is_empty());
    assert_eq!((missed.met_late(), missed.missed()), (0, 1));
}

#[test]
fn a_followed_thread_that_takes_another_name_goes_on_under_it() {
    let events = [
        switch(0, 1, 0, 0, A),
        at(
            100,
            1,
            A,
            EventKind::TaskRename {
                tid: A,
                old: comm(A),
                comm: comm(HOG),
            },
        ),
    ];
    let accounts = run(&[A], &events).finish(Ticks(200), &Names);
    assert_eq!(accounts.len(), 1);
    assert_eq!(
        (accounts[0].comm.to_string(), accounts[0].running_ns),
        (comm(HOG).to_string(), Nanos(200))
    );
}

#[test]
fn processes_are_followed_only_when_children_are_wanted() {
    let events = [
        switch(0, 0, 0, 0, A),
        at(
            100,
            0,
            A,
            EventKind::TaskNew {
                tid: B,
                comm: comm(A),
                thread: false,
                into_cgroup: false,
            },
        ),
        switch(150, 1, 0, 0, B),
    ];
    assert_eq!(run(&[A], &events).finish(Ticks(200), &Names).len(), 1);
    let mut settings = settings();
    settings.children = true;
    let mut follower = ThreadFollower::new(settings);
    follower.measure(Ticks(0), Ticks(u64::MAX));
    follow(&mut follower, A);
    events
        .iter()
        .for_each(|event| follower.event(event, &Names));
    assert_eq!(follower.finish(Ticks(200), &Names).len(), 2);
}

#[test]
fn a_wake_up_on_the_way_to_sleep_makes_a_wait_unless_another_one_follows() {
    let way = [
        switch(0, 1, 0, 0, A),
        // Another CPU wakes it while it is going to sleep.
        waking(990, 0, B, A, 1),
        switch(1000, 1, A, 1, HOG),
    ];
    let waited = [way.as_slice(), &[switch(1300, 1, HOG, 0, A)]].concat();
    let account = &run(&[A], &waited).finish(Ticks(1400), &Names)[0];
    assert_eq!(
        (account.waiting_ns, account.blocked_ns),
        (Nanos(300), Nanos(0))
    );
    let slept = [
        way.as_slice(),
        &[waking(1250, 0, B, A, 1), switch(1300, 1, HOG, 0, A)],
    ]
    .concat();
    let account = &run(&[A], &slept).finish(Ticks(1400), &Names)[0];
    // The first wake-up had been used up: it slept until the second.
    assert_eq!(
        (account.waiting_ns, account.blocked_ns),
        (Nanos(50), Nanos(250))
    );
}

#[test]
fn lost_records_make_time_unknown_until_the_thread_is_seen_again() {
    let mut follower = run(&[A], &[switch(0, 1, 0, 0, A)]);
    follower.lost(
        jitterscope_model::CpuId(1),
        (Ticks(500), Ticks(900)),
        jitterscope_model::Verdict::TraceDataLost,
        &Names,
    );
    follower.event(&switch(1000, 1, A, 1, 0), &Names);
    let account = &follower.finish(Ticks(1500), &Names)[0];
    assert_eq!(
        (account.running_ns, account.unknown_ns, account.blocked_ns),
        (Nanos(500), Nanos(500), Nanos(500))
    );
}

#[test]
fn a_sleeper_without_wake_up_may_have_waited_since_a_loss() {
    // It goes to sleep at 100.
    let begin = || run(&[A], &[switch(0, 1, 0, 0, A), switch(100, 1, A, 1, 0)]);
    let account = |mut follower: ThreadFollower, events: &[KernelEvent]| {
        events
            .iter()
            .for_each(|event| follower.event(event, &Names));
        let account = follower.finish(Ticks(2000), &Names)[0].clone();
        [
            account.blocked_ns,
            account.unknown_ns,
            account.waiting_ns,
            account.running_ns,
        ]
        .map(|ns| ns.0)
    };
    let put_on = switch(1000, 1, 0, 0, A);
    // Its waker ran on another CPU, whose records are missing.
    let mut lossy = begin();
    lossy.lost(
        jitterscope_model::CpuId(0),
        (Ticks(400), Ticks(900)),
        jitterscope_model::Verdict::TraceDataLost,
        &Names,
    );
    assert_eq!(
        account(lossy, std::slice::from_ref(&put_on)),
        [300, 600, 0, 1100]
    );
    // A recorded wake-up shows that it slept until then.
    let mut woken = begin();
    woken.lost(
        jitterscope_model::CpuId(0),
        (Ticks(400), Ticks(900)),
        jitterscope_model::Verdict::TraceDataLost,
        &Names,
    );
    assert_eq!(
        account(woken, &[waking(950, 0, B, A, 1), put_on]),
        [850, 0, 50, 1100]
    );
    // A loss during an earlier sleep does not matter.
    let mut earlier = begin();
    earlier.lost(
        jitterscope_model::CpuId(0),
        (Ticks(150), Ticks(160)),
        jitterscope_model::Verdict::TraceDataLost,
        &Names,
    );
    let reported = [
        waking(200, 0, B, A, 1),
        switch(200, 1, 0, 0, A),
        switch(300, 1, A, 1, 0),
        switch(400, 1, 0, 0, A),
    ];
    assert_eq!(account(earlier, &reported), [200, 0, 0, 1800]);
}

#[test]
fn an_arrival_during_a_loss_is_not_reported_waiting() {
    let lost = |follower: &mut ThreadFollower| {
        follower.lost(
            jitterscope_model::CpuId(1),
            (Ticks(500), Ticks(900)),
            jitterscope_model::Verdict::TraceDataLost,
            &Names,
        );
    };
    // Woken for that CPU from another one, it ran there and went to sleep again without records. No thread waits for
    // 1,200.
    let mut follower = run(&[A], &[switch(0, 1, 0, 0, A), switch(100, 1, A, 1, HOG)]);
    lost(&mut follower);
    let seen_again = tick(900, 910, 1, HOG);
    let later = [waking(1700, 0, B, A, 1), switch(1800, 1, HOG, 1, A)];
    for event in [waking(600, 0, B, A, 1)]
        .iter()
        .chain(&seen_again)
        .chain(&later)
    {
        follower.event(event, &Names);
    }
    let account = &follower.finish(Ticks(2000), &Names)[0];
    let reported = shown(&follower.take_episodes());
    assert_eq!(reported, ["wait after wake-up 1700-1800: hog 100"]);
    assert_eq!(
        (account.blocked_ns, account.unknown_ns, account.waiting_ns),
        (Nanos(500), Nanos(1100), Nanos(100))
    );
    // Moved there while it waits elsewhere.
    let mut follower = run(&[A], &[switch(0, 0, 0, 0, A), switch(100, 0, A, 0, HOG)]);
    lost(&mut follower);
    for event in [migrate(600, 0, A, 0, 1), switch(1500, 1, HOG, 1, A)] {
        follower.event(&event, &Names);
    }
    let account = &follower.finish(Ticks(2000), &Names)[0];
    assert_eq!(
        shown(&follower.take_episodes()),
        ["preempted 100-600: hog 500"]
    );
    assert_eq!(
        (account.waiting_ns, account.unknown_ns),
        (Nanos(500), Nanos(900))
    );
}

#[test]
fn only_the_measured_time_counts() {
    let mut follower = ThreadFollower::new(settings());
    follower.measure(Ticks(1000), Ticks(2000));
    follow(&mut follower, A);
    for event in [
        switch(0, 1, 0, 0, A),
        switch(900, 1, A, 0, HOG),
        switch(1100, 1, HOG, 1, A),
        switch(1950, 1, A, 0, HOG),
        switch(2500, 1, HOG, 1, A),
    ] {
        follower.event(&event, &Names);
    }
    let account = &follower.finish(Ticks(2600), &Names)[0];
    assert_eq!(
        (account.running_ns, account.waiting_ns),
        (Nanos(850), Nanos(150))
    );
    let reported = shown(&follower.take_episodes());
    assert_eq!(
        reported,
        [
            "preempted 1000-1100: hog 100",
            "preempted 1950-2000: hog 50"
        ]
    );
    assert_eq!(account.involuntary_switches, 1);
}

#[test]
fn a_thread_put_on_the_cpu_unseen_is_known_by_what_it_is_charged_for() {
    let charge = EventKind::StatRuntime {
        tid: A,
        runtime_ns: 300,
    };
    let events = [
        switch(0, 1, A, 1, 0),
        waking(1000, 0, B, A, 1),
        // The idle thread's exit is not recorded.
        at(1500, 1, A, charge),
        switch(1501, 1, A, 1, 0),
    ];
    let mut follower = run(&[A], &events);
    let account = &follower.finish(Ticks(2000), &Names)[0];
    assert_eq!(
        (account.waiting_ns, account.running_ns, account.unknown_ns),
        (Nanos(200), Nanos(301), Nanos(0))
    );
    assert_eq!(account.runs, 1);
    // Charges are recorded only after such a switch was seen: until then the time has no culprit.
    let without: Vec<_> = events
        .into_iter()
        .filter(|event| !matches!(event.kind, EventKind::StatRuntime { .. }))
        .collect();
    let mut follower = run(&[A], &without);
    let account = &follower.finish(Ticks(2000), &Names)[0];
    assert_eq!(
        (account.waiting_ns, account.running_ns, account.unknown_ns),
        (Nanos(0), Nanos(0), Nanos(501))
    );
    assert!(follower.take_episodes().is_empty());
}

/// Its own turn was counted as waiting time, and that as the time of a switch.
#[test]
fn without_charges_an_unseen_thread_waits_until_it_is_seen() {
    let page_fault = EventKind::PageFault {
        user: true,
        address: 0,
        ip: 0,
    };
    let events = [
        switch(0, 1, 0, 0, A),
        // Throttled: the idle thread has the CPU, and its exit is not recorded.
        switch(1000, 1, A, 0, 0),
        at(
            1100,
            1,
            0,
            EventKind::IrqEntry {
                irq: 1,
                action: "disk".into(),
            },
        ),
        at(1200, 1, 0, EventKind::IrqExit { irq: 1 }),
        at(1500, 1, A, page_fault.clone()),
        at(1700, 1, A, page_fault),
        switch(1900, 1, A, 1, 0),
    ];
    let mut follower = run(&[A], &events);
    let account = &follower.finish(Ticks(2000), &Names)[0];
    assert_eq!(
        (account.waiting_ns, account.running_ns, account.unknown_ns),
        (Nanos(500), Nanos(1400), Nanos(0))
    );
    let waited = "preempted 1000-1500: runnable but idle 100, disk 100, unrecorded switch 300";
    assert_eq!(shown(&follower.take_episodes()), [waited]);
}

/// The idle thread's exit is recorded in all turns but some.
#[test]
fn charges_are_wanted_where_a_good_part_of_the_switches_is_missing() {
    let missing = |turns: u64, every: u64| {
        let mut events = Vec::new();
        for turn in 0..turns {
            if turn % every != 0 {
                events.push(switch(turn * 100 + 50, 1, 0, 0, A));
            }
            events.push(switch(turn * 100 + 90, 1, A, 1, 0));
        }
        run(&[A], &events).misses_switches()
    };
    assert!(missing(100, 2));
    assert!(missing(900, 45));
    assert!(!missing(900, 90), "rarely");
    assert!(!missing(6, 2), "no more than once by chance");
    assert!(!missing(500, 501), "never");
}

#[test]
fn a_quiet_cpu_whose_switches_are_missing_is_not_lost_among_busy_ones() {
    let mut events = Vec::new();
    for turn in 0..2_000 {
        events.push(switch(turn * 100 + 10, 0, 0, 0, B));
        events.push(switch(turn * 100 + 20, 0, B, 1, 0));
        if turn % 100 == 0 {
            // The idle thread's exit is never recorded.
            events.push(switch(turn * 100 + 90, 1, A, 1, 0));
        }
    }
    assert!(run(&[A], &events).misses_switches());
}

#[test]
fn a_stopped_thread_names_the_sender_of_its_signal() {
    let stop = |time, sender| {
        at(
            time,
            0,
            sender,
            EventKind::Signal {
                tid: A,
                sig: 19,
                code: 0,
            },
        )
    };
    let events = [
        switch(100, 1, 0, 0, A),
        stop(900, HOG),
        switch(1000, 1, A, 4, 0),
        // It is already stopped: this signal had no effect.
        stop(2000, B),
        waking(5000, 0, B, A, 1),
        switch(5200, 1, 0, 0, A),
        switch(6000, 1, A, 8, 0),
        waking(7000, 0, B, A, 1),
        switch(7001, 1, 0, 0, A),
    ];
    let mut follower = run(&[A], &events);
    let account = &follower.finish(Ticks(8000), &Names)[0];
    assert_eq!(
        (account.stopped_ns, account.blocked_ns),
        (Nanos(5000), Nanos(0))
    );
    assert_eq!(
        (
            account.waiting_ns,
            account.longest_wait_ns,
            account.voluntary_switches
        ),
        (Nanos(201), Nanos(200), 0)
    );
    let episodes = follower.take_episodes();
    assert_eq!(
        shown(&episodes),
        [
            "stopped 1000-5000: stopped by a signal 4000",
            "wait after wake-up 5000-5200: idle exit 200",
            "stopped 6000-7000: stopped by a tracer 1000",
            "wait after wake-up 7000-7001: idle exit 1",
        ]
    );
    let by = |at: usize| {
        episodes[at].slices[0]
            .culprit
            .sender
            .as_ref()
            .map(|sender| sender.tid)
    };
    assert_eq!((by(0), by(2)), (Some(HOG), None));
}

#[test]
fn a_thread_stopped_before_the_start_is_stopped_throughout() {
    let mut follower = ThreadFollower::new(settings());
    follower.measure(Ticks(100), Ticks(u64::MAX));
    let thread = ThreadRef {
        tid: A,
        comm: comm(A),
    };
    follower.follow(
        Following {
            thread,
            role: None,
            start: Start::Stopped(StoppedBy::Signal),
        },
        Ticks(0),
    );
    follower.event(&switch(500, 1, 0, 0, HOG), &Names);
    let account = &follower.finish(Ticks(1000), &Names)[0];
    assert_eq!(
        (account.stopped_ns, account.unknown_ns),
        (Nanos(900), Nanos(0))
    );
    assert_eq!(
        shown(&follower.take_episodes()),
        ["stopped 100-1000: stopped by a signal 900"]
    );
    // The record of its continuation may be lost.
    let mut follower = run(&[A], &[switch(0, 1, 0, 0, A), switch(100, 1, A, 4, 0)]);
    follower.lost(
        jitterscope_model::CpuId(0),
        (Ticks(500), Ticks(900)),
        jitterscope_model::Verdict::TraceDataLost,
        &Names,
    );
    let account = &follower.finish(Ticks(1000), &Names)[0];
    assert_eq!(
        (account.stopped_ns, account.unknown_ns),
        (Nanos(400), Nanos(500))
    );
}
