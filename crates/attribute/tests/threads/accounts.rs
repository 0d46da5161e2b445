//! All fields of a thread's account.

use crate::common::*;
use jitterscope_attribute::{Following, Start, ThreadFollower};
use jitterscope_model::{CpuId, EventKind, KernelEvent, Nanos, ThreadRef, Ticks};

fn fault(time: u64, tid: i32) -> KernelEvent {
    at(
        time,
        1,
        tid,
        EventKind::PageFault {
            user: true,
            address: 1,
            ip: 2,
        },
    )
}

#[test]
fn an_account_covers_all_its_time() {
    let mut follower = ThreadFollower::new(settings());
    follower.measure(Ticks(0), Ticks(u64::MAX));
    let thread = ThreadRef {
        tid: A,
        comm: comm(A),
    };
    follower.follow(
        Following {
            thread,
            role: Some("producer"),
            start: Start::Asleep,
        },
        Ticks(0),
    );
    let mut events = vec![switch(100, 1, 0, 1, A), fault(150, A), fault(160, A)];
    events.extend(tick(200, 230, 1, A));
    events.extend([
        switch(300, 1, A, 0, HOG),
        // Not its own.
        fault(350, HOG),
        switch(450, 1, HOG, 1, A),
        switch(500, 1, A, 1, HOG),
        waking(600, 0, 0, A, 2),
        switch(660, 2, 0, 1, A),
    ]);
    events
        .iter()
        .for_each(|event| follower.event(event, &Names));
    let account = follower.finish(Ticks(800), &Names).remove(0);
    assert_eq!(
        (account.tid, account.comm.as_str(), account.role.as_deref()),
        (A, "a", Some("producer"))
    );
    assert_eq!((account.from, account.until), (Ticks(0), Ticks(800)));
    assert_eq!((account.appeared, account.exited), (false, false));
    assert_eq!(
        [
            account.running_ns,
            account.interrupted_ns,
            account.waiting_ns,
            account.preempted_ns
        ],
        [
            Nanos(200 + 50 + 140),
            Nanos(30),
            Nanos(150 + 60),
            Nanos(150)
        ]
    );
    assert_eq!(
        (account.blocked_ns, account.unknown_ns),
        (Nanos(100 + 100), Nanos::ZERO)
    );
    assert_eq!(account.longest_wait_ns, Nanos(150));
    assert_eq!((account.page_faults, account.migrations), (2, 1));
    assert_eq!(
        (
            account.runs,
            account.voluntary_switches,
            account.involuntary_switches
        ),
        (3, 1, 1)
    );
    let cpus: Vec<(CpuId, u64, Nanos)> = account
        .cpus
        .iter()
        .map(|share| (share.cpu, share.runs, share.running_ns))
        .collect();
    assert_eq!(cpus, [(CpuId(1), 2, Nanos(250)), (CpuId(2), 1, Nanos(140))]);
    let total: Nanos = account.ran_instead.iter().map(|row| row.total_ns).sum();
    assert_eq!(total, Nanos(30 + 150 + 60));
}

#[test]
fn a_switch_that_left_no_record_is_counted_unless_records_were_lost() {
    let first = switch(100, 1, 0, 1, A);
    let mut follower = run(&[A], std::slice::from_ref(&first));
    assert!(follower.unrecorded_switches().is_empty());
    tick(300, 310, 1, HOG)
        .iter()
        .for_each(|event| follower.event(event, &Names));
    assert_eq!(
        follower
            .unrecorded_switches()
            .into_iter()
            .collect::<Vec<_>>(),
        [(CpuId(1), 1)]
    );
    let mut follower = run(&[A], &[first]);
    follower.lost(
        CpuId(1),
        (Ticks(150), Ticks(250)),
        jitterscope_model::Verdict::TraceDataLost,
        &Names,
    );
    tick(300, 310, 1, HOG)
        .iter()
        .for_each(|event| follower.event(event, &Names));
    assert!(follower.unrecorded_switches().is_empty());
}

#[test]
fn a_move_counts_once_whether_its_record_or_the_next_switch_shows_it() {
    let migrations = |events: &[KernelEvent]| {
        let begins = [switch(0, 0, 0, 0, A), switch(100, 0, A, 0, HOG)];
        run(&[A], &[&begins, events].concat()).finish(Ticks(1000), &Names)[0].migrations
    };
    let (moved, on) = (migrate(200, 0, A, 0, 1), switch(300, 1, 0, 0, A));
    assert_eq!(migrations(&[moved.clone(), on.clone()]), 1);
    assert_eq!(migrations(&[on]), 1);
    assert_eq!(
        migrations(&[moved, migrate(250, 0, A, 1, 0), switch(300, 0, HOG, 1, A)]),
        2
    );
    assert_eq!(
        migrations(&[migrate(200, 0, A, 0, 0), switch(300, 0, HOG, 1, A)]),
        0
    );
}

#[test]
fn a_charge_on_another_cpu_places_the_thread_there_for_its_length() {
    let shares = |events: &[KernelEvent]| {
        let mut all = vec![switch(0, 0, 0, 0, A)];
        all.extend_from_slice(events);
        let account = run(&[A], &all).finish(Ticks(2000), &Names).remove(0);
        account
            .cpus
            .iter()
            .map(|share| (share.cpu.0, share.runs, share.running_ns.0))
            .collect::<Vec<_>>()
    };
    let charged = |time, cpu, by, ran| {
        at(
            time,
            cpu,
            by,
            EventKind::StatRuntime {
                tid: A,
                runtime_ns: ran,
            },
        )
    };
    assert_eq!(
        shares(&[charged(1000, 1, A, 300)]),
        [(0, 1, 700), (1, 1, 1300)]
    );
    // A charge on its own CPU is nothing new, and a charge for another thread does not show where it is.
    assert_eq!(shares(&[charged(1000, 0, A, 300)]), [(0, 1, 2000)]);
    assert_eq!(shares(&[charged(1000, 1, HOG, 300)]), [(0, 1, 2000)]);
    // Not before the time that is already reported: it was preempted at 900.
    assert_eq!(
        shares(&[switch(900, 0, A, 0, HOG), charged(1000, 1, A, 300)]),
        [(0, 1, 900), (1, 1, 1100)]
    );
}

#[test]
fn a_thread_has_an_account_if_any_of_its_time_was_measured() {
    let accounts = |from: u64, until: u64| {
        let mut follower = ThreadFollower::new(settings());
        follower.measure(Ticks(from), Ticks(until));
        follow(&mut follower, A);
        let born = |time| {
            at(
                time,
                0,
                A,
                EventKind::TaskNew {
                    tid: B,
                    comm: comm(A),
                    thread: true,
                    into_cgroup: false,
                },
            )
        };
        // The followed thread ends at 500, and makes another at 400.
        for event in [switch(0, 0, 0, 0, A), born(400), switch(500, 0, A, 16, 0)] {
            follower.event(&event, &Names);
        }
        let accounts = follower.finish(Ticks(1000), &Names);
        accounts
            .iter()
            .map(|a| (a.tid, a.from.0, a.until.0, a.appeared))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        accounts(0, 1000),
        [(A, 0, 500, false), (B, 400, 1000, true)]
    );
    // A thread that begins with the measurement appears in it.
    assert_eq!(
        accounts(400, 1000),
        [(A, 400, 500, false), (B, 400, 1000, true)]
    );
    assert_eq!(
        accounts(401, 1000),
        [(A, 401, 500, false), (B, 401, 1000, false)]
    );
    assert_eq!(accounts(500, 1000), [(B, 500, 1000, false)]);
    assert_eq!(accounts(0, 400), [(A, 0, 400, false)]);
    assert_eq!(accounts(0, 401), [(A, 0, 401, false), (B, 400, 401, true)]);
}

#[test]
fn close_episodes_merge_unless_one_is_a_stop() {
    let reported = |gap: u64, state: u64| {
        let events = [
            switch(0, 1, 0, 0, A),
            switch(100, 1, A, 0, HOG),
            switch(200, 1, HOG, 1, A),
            switch(200 + gap, 1, A, state, HOG),
            waking(400, 0, 0, A, 1),
            switch(400, 1, HOG, 1, A),
        ];
        let mut follower = run(&[A], &events);
        follower.finish(Ticks(1000), &Names);
        shown(&follower.take_episodes())
    };
    assert_eq!(
        reported(10, 0),
        ["preempted 100-400: hog 100, context switch 10, hog 190"]
    );
    assert_eq!(
        reported(11, 0),
        ["preempted 100-200: hog 100", "preempted 211-400: hog 189"]
    );
    assert_eq!(
        reported(10, 4),
        [
            "preempted 100-200: hog 100",
            "stopped 210-400: stopped by a signal 190"
        ]
    );
}
