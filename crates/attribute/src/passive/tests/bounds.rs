//! Where counting begins, and how much is kept.

use super::*;

fn thread(tid: i32) -> ThreadRef {
    ThreadRef {
        tid,
        comm: Comm::new("own"),
    }
}

#[test]
fn an_unknown_thread_waits_from_its_wake_up_unless_it_runs() {
    // Another thread has it.
    let events = [
        switch(100, 0, SLEEPS, OTHER),
        waking(300, 9, OWN, HERE),
        switch(400, OTHER, SLEEPS, OWN),
    ];
    let (cpu, stalls) = watch(&events, 500);
    assert_eq!((stalls.len(), times(&cpu)), (1, [100, 0, 100, 200, 0, 100]));
    // No thread is known to have it: then none steals it.
    let (cpu, stalls) = watch(
        &[waking(300, 9, OWN, HERE), switch(400, OTHER, SLEEPS, OWN)],
        500,
    );
    assert_eq!((stalls.len(), times(&cpu)), (0, [100, 0, 0, 0, 0, 400]));
    // The thread has it itself: a wake-up of a running thread causes no wait.
    let mut events = tick(100, 110, OWN).to_vec();
    events.extend([
        waking(300, 9, OWN, HERE),
        switch(40_000, OWN, SLEEPS, OTHER),
    ]);
    let (cpu, stalls) = watch(&events, 50_000);
    assert_eq!(
        (stalls.len(), cpu.waiting_ns),
        (1, Nanos::ZERO),
        "only the interrupt: {stalls:?}"
    );
}

#[test]
fn close_stretches_merge_and_become_a_stall_at_the_threshold() {
    let stretches = |apart: u64, threshold: u64| {
        let mut events = vec![switch(100, 0, SLEEPS, OWN)];
        events.extend(tick(300, 350, OWN));
        events.extend(tick(350 + apart, 400 + apart, OWN));
        let settings = PassiveSettings {
            threshold: Ticks(threshold),
            ..settings()
        };
        let (cpu, stalls) = watched(settings, &events, 1000);
        let lengths: Vec<u64> = stalls
            .iter()
            .map(|row| row.0.end.0 - row.0.start.0)
            .collect();
        assert_eq!(cpu.stalls, lengths.len() as u64);
        assert_eq!(times(&cpu).iter().sum::<u64>(), 1000);
        (cpu.stretches, cpu.longest_ns.0, lengths)
    };
    assert_eq!(stretches(10, 110), (1, 110, vec![110]));
    assert_eq!(stretches(10, 111), (1, 110, vec![]));
    assert_eq!(stretches(11, 50), (2, 50, vec![50, 50]));
    assert_eq!(stretches(11, 51), (2, 50, vec![]));
}

#[test]
fn what_is_folded_adds_up_over_the_waits() {
    let mut watch = PassiveWatch::new(settings());
    watch.measure(Ticks(0), Ticks(u64::MAX));
    let mut now = 0;
    let mut folded = vec![watch.folded()];
    watch.event(&switch(now, 0, SLEEPS, OWN), &NoNames);
    for _ in 0..2 {
        now += 100;
        watch.event(&switch(now, OWN, RUNNABLE, OTHER), &NoNames);
        // More turns in one wait than are kept.
        for _ in 0..40_000 {
            now += 10;
            watch.event(&switch(now, OTHER, SLEEPS, 300), &NoNames);
            now += 5;
            watch.event(&switch(now, 300, SLEEPS, OTHER), &NoNames);
        }
        now += 10;
        watch.event(&switch(now, OTHER, SLEEPS, OWN), &NoNames);
        folded.push(watch.folded());
    }
    let first = folded[1].since(folded[0]);
    assert!(first > Ticks(0) && first < Ticks(now / 2), "{folded:?}");
    assert_eq!(folded[2].since(folded[1]), first);
    let cpu = watch.finish(Ticks(now), &NoNames).remove(0);
    // The sums are still exact.
    assert_eq!(times(&cpu), [200, 0, now - 200, 0, 0, 0]);
    let sums: Vec<u64> = cpu.ran_instead.iter().map(|row| row.total_ns.0).collect();
    assert_eq!(sums, [2 * (40_000 * 10 + 10), 2 * 40_000 * 5]);
}

#[test]
fn only_what_lies_in_the_measured_time_counts() {
    let fault = |at| {
        on(
            HERE,
            at,
            OWN,
            EventKind::PageFault {
                user: true,
                address: 1,
                ip: 2,
            },
        )
    };
    let mut events = vec![switch(50, 0, SLEEPS, OWN)];
    events.extend([99, 100, 200, 201].map(fault));
    events.extend([
        switch(210, OWN, RUNNABLE, OTHER),
        switch(400, OTHER, SLEEPS, OWN),
    ]);
    let mut watch = PassiveWatch::new(settings());
    watch.measure(Ticks(100), Ticks(300));
    let mut in_order = events.clone();
    in_order.sort_by_key(|event| event.time);
    in_order
        .iter()
        .for_each(|event| watch.event(event, &NoNames));
    let cpu = watch.finish(Ticks(500), &NoNames).remove(0);
    assert_eq!((cpu.from_ticks, cpu.until_ticks), (Ticks(100), Ticks(300)));
    assert_eq!(times(&cpu), [110, 0, 90, 0, 0, 0]);
    // Two were before and at the end of the counted time, and its turn began before.
    assert_eq!((cpu.page_faults, cpu.threads[0].runs), (3, 0));
    let stalls: Vec<(u64, u64)> = watch
        .take_stalls()
        .iter()
        .map(|s| (s.start.0, s.end.0))
        .collect();
    assert_eq!(stalls, [(210, 300)]);
}

#[test]
fn no_more_threads_belong_than_can_and_the_others_are_counted() {
    let mut watch = PassiveWatch::new(PassiveSettings {
        names: Vec::new(),
        ..settings()
    });
    assert!(!watch.met_owner());
    let most = i32::try_from(PassiveWatch::MOST_THREADS).unwrap();
    for tid in 0..=most + 3 {
        watch.belongs(Belonging {
            thread: thread(tid),
            on: None,
            asleep: false,
        });
    }
    // The idle thread never counts; a thread that already belongs is not refused.
    assert_eq!((watch.met_owner(), watch.refused()), (true, 3));
    watch.belongs(Belonging {
        thread: thread(1),
        on: None,
        asleep: true,
    });
    assert_eq!(watch.refused(), 3);
}

#[test]
fn of_many_threads_the_longest_are_named_and_all_are_counted() {
    let many = i32::try_from(PassiveCpu::MOST_THREADS).unwrap() + 6;
    let named = PassiveSettings {
        names: Vec::new(),
        ..settings()
    };
    let mut watch = PassiveWatch::new(named);
    watch.measure(Ticks(0), Ticks(u64::MAX));
    (1..=many).for_each(|tid| {
        watch.belongs(Belonging {
            thread: thread(1000 + tid),
            on: None,
            asleep: false,
        });
    });
    let mut now = 100;
    watch.event(&switch(now, 0, SLEEPS, 1001), &NoNames);
    for tid in 1..=many {
        // Later threads have more time, except for two equal ones.
        now += u64::try_from(if tid == 2 { 1 } else { tid }).unwrap();
        watch.event(
            &switch(now, 1000 + tid, SLEEPS, 1000 + tid % many + 1),
            &NoNames,
        );
    }
    let cpu = watch.finish(Ticks(now), &NoNames).remove(0);
    assert_eq!(
        (cpu.thread_count, cpu.threads.len()),
        (many as u64, PassiveCpu::MOST_THREADS)
    );
    let reported: Vec<(i32, u64)> = cpu
        .threads
        .iter()
        .map(|row| (row.tid, row.running_ns.0))
        .collect();
    assert_eq!(reported[0], (1000 + many, many as u64));
    assert!(
        reported.is_sorted_by_key(|(tid, ran)| (std::cmp::Reverse(*ran), *tid)),
        "{reported:?}"
    );
    // The first came twice: at the beginning, and at the end with a length of zero.
    assert!(
        cpu.threads.iter().all(|row| row.runs == 1),
        "{:?}",
        cpu.threads
    );
    assert_eq!(cpu.running_ns.0, now - 100);
}

#[test]
fn a_thread_that_has_ended_waits_no_more() {
    let events = [
        switch(100, 0, SLEEPS, OWN),
        switch(200, OWN, RUNNABLE, OTHER),
        // Its id is reused on another CPU, under another name: the waiting thread is gone.
        on(
            ELSEWHERE,
            250,
            9,
            EventKind::TaskNew {
                tid: OWN,
                comm: Comm::new("x"),
                thread: false,
                into_cgroup: false,
            },
        ),
        switch(400, OTHER, SLEEPS, 0),
    ];
    let (cpu, stalls) = watch(&events, 500);
    assert_eq!(
        stalls
            .iter()
            .map(|row| (row.0.start.0, row.0.end.0))
            .collect::<Vec<_>>(),
        [(200, 250)]
    );
    assert_eq!(times(&cpu), [100, 0, 50, 150, 100, 100]);
}

#[test]
fn a_move_of_a_thread_that_runs_elsewhere_makes_no_wait_here() {
    let named = PassiveSettings {
        cpus: [HERE, ELSEWHERE].into_iter().collect(),
        ..settings()
    };
    let there = |time, prev, next| {
        let kind = EventKind::SchedSwitch {
            prev: task(prev),
            prev_state: SLEEPS,
            next: task(next),
        };
        on(ELSEWHERE, time, prev, kind)
    };
    let mut watch = PassiveWatch::new(named);
    watch.measure(Ticks(0), Ticks(500));
    // A record that names a CPU where it is not.
    let events = [
        switch(100, 0, SLEEPS, OTHER),
        there(120, 0, OWN),
        moved(200, 9, OWN, HERE, HERE),
    ];
    events.iter().for_each(|event| watch.event(event, &NoNames));
    let cpus = watch.finish(Ticks(500), &NoNames);
    assert_eq!(
        cpus.iter().map(|cpu| cpu.waiting_ns.0).collect::<Vec<_>>(),
        [0, 0]
    );
    assert_eq!(
        cpus.iter().map(|cpu| cpu.running_ns.0).collect::<Vec<_>>(),
        [380, 0]
    );
}

#[test]
fn a_switch_that_left_no_record_is_counted_on_its_cpu() {
    let mut watch = PassiveWatch::new(settings());
    watch.measure(Ticks(0), Ticks(1000));
    watch.event(&switch(100, 0, SLEEPS, OWN), &NoNames);
    assert!(watch.unrecorded_switches().is_empty());
    tick(200, 210, OTHER)
        .iter()
        .for_each(|event| watch.event(event, &NoNames));
    assert_eq!(
        watch.unrecorded_switches().into_iter().collect::<Vec<_>>(),
        [(HERE, 1)]
    );
}

#[test]
fn a_cpu_is_gone_until_a_record_of_later_says_that_it_is_back() {
    let mut watch = PassiveWatch::new(settings());
    watch.measure(Ticks(0), Ticks(1000));
    watch.event(&switch(100, 0, SLEEPS, OWN), &NoNames);
    assert!(!watch.is_gone(HERE));
    watch.gone(HERE, Ticks(300));
    assert!(watch.is_gone(HERE) && !watch.is_gone(ELSEWHERE));
    watch.event(&switch(300, OWN, SLEEPS, 0), &NoNames);
    assert!(watch.is_gone(HERE), "it was written before");
    watch.event(&switch(301, 0, SLEEPS, OWN), &NoNames);
    assert!(!watch.is_gone(HERE));
}

#[test]
fn where_records_of_senders_were_lost_a_thief_has_no_known_waker() {
    let waker = |lost: Option<(u64, u64)>| {
        let mut watch = PassiveWatch::new(settings());
        watch.measure(Ticks(0), Ticks(1000));
        let events = [
            switch(100, 0, SLEEPS, OWN),
            waking(150, 9, OTHER, HERE),
            switch(200, OWN, RUNNABLE, OTHER),
            switch(500, OTHER, SLEEPS, OWN),
        ];
        for (n, event) in events.iter().enumerate() {
            watch.event(event, &NoNames);
            if let (1, Some((from, to))) = (n, lost) {
                watch.senders_lost(Ticks(from), Ticks(to));
            }
        }
        watch.finish(Ticks(1000), &NoNames);
        let stall = watch.take_stalls().remove(0);
        let (_, attribution) = stall.into_stall(StallId(0), TickRate::NANOSECONDS);
        attribution.parts[0]
            .culprit
            .sender
            .as_ref()
            .map(|sender| sender.tid)
    };
    assert_eq!(
        [None, Some((160, 190)), Some((20, 90))].map(waker),
        [Some(9), None, Some(9)]
    );
}

#[test]
fn what_is_dropped_of_too_many_records_of_senders_is_counted() {
    let mut watch = PassiveWatch::new(settings());
    for time in 0..(1 << 20) + 3 {
        watch.event(&moved(time, 9, OTHER, HERE, ELSEWHERE), &NoNames);
    }
    assert_eq!(watch.senders_dropped(), 3);
}

#[test]
fn events_sent_by_a_watched_cpu_do_not_show_its_thread() {
    let (function, callsite, target) = (KernelAddr(1), KernelAddr(2), ELSEWHERE);
    for kind in [
        EventKind::CsdQueued {
            target,
            function,
            csd: 7,
            callsite,
        },
        EventKind::WorkQueued {
            work: 7,
            function,
            workqueue: "events".into(),
            target: None,
        },
        EventKind::IpiSendCpu {
            target,
            callsite,
            callback: function,
        },
        EventKind::IpiSendCpumask {
            targets: 1,
            callsite,
            callback: function,
        },
    ] {
        let mut watch = PassiveWatch::new(settings());
        watch.measure(Ticks(0), Ticks(1000));
        watch.event(&switch(100, 0, SLEEPS, OWN), &NoNames);
        watch.event(&on(HERE, 300, OTHER, kind), &NoNames);
        let cpu = watch.finish(Ticks(1000), &NoNames).remove(0);
        assert_eq!(times(&cpu), [900, 0, 0, 0, 0, 100]);
    }
}

#[test]
fn after_a_loss_a_thread_that_had_the_cpu_can_wait_for_it_again() {
    let mut watch = PassiveWatch::new(settings());
    watch.measure(Ticks(0), Ticks(1000));
    watch.event(&switch(100, 0, SLEEPS, OWN), &NoNames);
    watch.lost(
        HERE,
        (Ticks(150), Ticks(200)),
        jitterscope_model::Verdict::TraceDataLost,
        &NoNames,
    );
    let [entry, exit] = tick(250, 260, OTHER);
    for event in [
        entry,
        exit,
        waking(300, 9, OWN, HERE),
        switch(350, OTHER, SLEEPS, OWN),
    ] {
        watch.event(&event, &NoNames);
    }
    let cpu = watch.finish(Ticks(1000), &NoNames).remove(0);
    assert_eq!(times(&cpu), [50 + 650, 0, 50, 50, 0, 100 + 100]);
}

#[test]
fn without_a_switch_a_wait_ends_with_the_first_record_of_its_thread() {
    let mut events = vec![
        switch(100, 0, SLEEPS, OWN),
        switch(200, OWN, RUNNABLE, OTHER),
    ];
    events.extend(tick(300, 310, OWN));
    events.push(switch(500, OWN, SLEEPS, OTHER));
    let (cpu, _) = watch(&events, 1000);
    assert_eq!(times(&cpu), [100 + 190, 10, 100, 500, 0, 100]);
}

#[test]
fn a_wake_up_of_who_waits_already_changes_nothing() {
    let events = [
        switch(100, 0, SLEEPS, OWN),
        switch(200, OWN, RUNNABLE, OTHER),
        waking(250, 9, OWN, HERE),
        switch(400, OTHER, SLEEPS, OWN),
    ];
    let (_, stalls) = watch(&events, 1000);
    assert_eq!(
        row(&stalls[0]),
        (
            200,
            400,
            vec![("task200".to_owned(), 200, Phase::Preempted)]
        )
    );
}

#[test]
fn a_thread_that_is_moved_away_takes_no_others_wait_with_it() {
    let events = [
        switch(100, 0, SLEEPS, TWIN),
        switch(150, TWIN, RUNNABLE, OWN),
        switch(200, OWN, RUNNABLE, OTHER),
        moved(260, 9, OWN, HERE, ELSEWHERE),
        switch(500, OTHER, SLEEPS, TWIN),
        switch(600, TWIN, SLEEPS, OTHER),
    ];
    let (cpu, _) = watch(&events, 1000);
    assert_eq!(times(&cpu), [50 + 50 + 100, 0, 300, 400, 0, 100]);
}

#[test]
fn a_thread_of_a_wanted_name_belongs_from_its_birth_on() {
    let born = |comm| {
        on(
            ELSEWHERE,
            50,
            9,
            EventKind::TaskNew {
                tid: OWN,
                comm: Comm::new(comm),
                thread: false,
                into_cgroup: false,
            },
        )
    };
    for (comm, met) in [("own", true), ("stranger", false)] {
        let mut watch = PassiveWatch::new(settings());
        watch.event(&born(comm), &NoNames);
        assert_eq!(watch.met_owner(), met);
    }
}
