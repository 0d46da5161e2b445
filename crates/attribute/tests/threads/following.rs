//! Which threads are followed, and a follower's results about itself.

use crate::common::*;
use jitterscope_attribute::{FollowerSettings, Following, NameResolver, Start, ThreadFollower};
use jitterscope_model::{
    Comm, CpuId, EventKind, KernelAddr, Name, Nanos, Owner, StoppedBy, TaskIdentity, ThreadRef,
    Ticks,
};

fn follower(settings: FollowerSettings) -> ThreadFollower {
    let mut follower = ThreadFollower::new(settings);
    follower.measure(Ticks(0), Ticks(u64::MAX));
    follower
}

#[test]
fn the_limit_of_followed_threads_counts_the_omitted_ones() {
    let mut follower = follower(FollowerSettings {
        most_threads: 2,
        virtual_machine: false,
        ..settings()
    });
    assert!(follower.is_idle());
    follow(&mut follower, A);
    follow(&mut follower, B);
    // A thread that is already followed is not refused.
    follow(&mut follower, A);
    assert_eq!((follower.refused(), follower.is_idle()), (0, false));
    follow(&mut follower, HOG);
    assert_eq!(follower.refused(), 1);
    // Ended threads are reported, so they also take a place.
    for event in [switch(0, 1, 0, 0, A), switch(100, 1, A, 16, 0)] {
        follower.event(&event, &Names);
    }
    follow(&mut follower, HOG);
    assert_eq!((follower.refused(), follower.is_idle()), (2, false));
    follower.event(&switch(200, 0, B, 16, 0), &Names);
    assert!(follower.is_idle());
    let tids: Vec<i32> = follower
        .finish(Ticks(300), &Names)
        .iter()
        .map(|account| account.tid)
        .collect();
    assert_eq!(tids, [A, B]);
}

#[test]
fn a_newly_followed_thread_is_reported_once() {
    let mut follower = follower(settings());
    follow(&mut follower, A);
    assert_eq!(
        (
            follower.take_newly_followed(),
            follower.take_newly_followed()
        ),
        (vec![A], vec![])
    );
    let born = at(
        100,
        0,
        A,
        EventKind::TaskNew {
            tid: B,
            comm: comm(A),
            thread: true,
            into_cgroup: false,
        },
    );
    follower.event(&born, &Names);
    follow(&mut follower, A);
    assert_eq!(follower.take_newly_followed(), [B]);
}

#[test]
fn what_is_dropped_of_too_many_records_of_senders_is_counted() {
    let mut follower = follower(settings());
    for time in 0..(1 << 20) + 3 {
        follower.event(&migrate(time, 0, HOG, 0, 1), &Names);
    }
    assert_eq!(follower.senders_dropped(), 3);
}

#[test]
fn a_wait_has_no_cause_where_records_of_senders_were_lost() {
    let stopped = |lost: Option<(u64, u64)>| {
        let mut follower = run(&[A], &[switch(0, 1, 0, 0, A)]);
        follower.event(
            &at(
                900,
                0,
                7,
                EventKind::Signal {
                    tid: A,
                    sig: 19,
                    code: 0,
                },
            ),
            &Names,
        );
        if let Some((from, to)) = lost {
            follower.senders_lost(Ticks(from), Ticks(to));
        }
        for event in [
            switch(1000, 1, A, 4, 0),
            waking(5000, 0, 8, A, 1),
            switch(5010, 1, 0, 0, A),
        ] {
            follower.event(&event, &Names);
        }
        follower.finish(Ticks(6000), &Names);
        let episodes = follower.take_episodes();
        episodes[0].slices[0]
            .culprit
            .sender
            .as_ref()
            .map(|sender| sender.tid)
    };
    assert_eq!(
        [None, Some((950, 960)), Some((100, 800))].map(stopped),
        [Some(7), None, Some(7)]
    );
}

#[test]
fn an_episode_is_handed_over_when_none_can_join_it_any_more() {
    // Those within a distance of ten are one.
    let mut follower = run(
        &[A],
        &[
            switch(0, 1, 0, 0, A),
            switch(100, 1, A, 0, HOG),
            switch(200, 1, HOG, 1, A),
        ],
    );
    assert!(follower.take_episodes().is_empty());
    follower.event(&at(210, 0, B, EventKind::SoftirqEntry { vec: 1 }), &Names);
    assert!(
        follower.take_episodes().is_empty(),
        "the next could begin now"
    );
    follower.event(&at(211, 0, B, EventKind::SoftirqExit { vec: 1 }), &Names);
    assert_eq!(
        shown(&follower.take_episodes()),
        ["preempted 100-200: hog 100"]
    );
    assert!(follower.take_episodes().is_empty());
}

#[test]
fn after_a_loss_unknown_and_stopped_threads_stay_distinct() {
    let account = |start| {
        let mut follower = follower(settings());
        let thread = ThreadRef {
            tid: A,
            comm: comm(A),
        };
        follower.follow(
            Following {
                thread,
                role: None,
                start,
            },
            Ticks(0),
        );
        follower.lost(
            CpuId(1),
            (Ticks(300), Ticks(400)),
            jitterscope_model::Verdict::TraceDataLost,
            &Names,
        );
        let account = follower.finish(Ticks(1000), &Names).remove(0);
        (account.stopped_ns, account.blocked_ns, account.unknown_ns)
    };
    // The process that let it continue may have done so from any CPU; a sleeper sleeps until a record wakes it.
    let stopped = Start::Stopped(StoppedBy::Signal);
    assert_eq!(account(stopped), (Nanos(300), Nanos::ZERO, Nanos(700)));
    assert_eq!(
        account(Start::Asleep),
        (Nanos::ZERO, Nanos(1000), Nanos::ZERO)
    );
    assert_eq!(
        account(Start::Unknown),
        (Nanos::ZERO, Nanos::ZERO, Nanos(1000))
    );
}

#[test]
fn a_thread_of_unknown_class_is_not_reported_as_throttled() {
    let born = at(
        1000,
        0,
        A,
        EventKind::TaskNew {
            tid: B,
            comm: comm(A),
            thread: true,
            into_cgroup: false,
        },
    );
    // It waits behind another, and long after it was made its CPU idles.
    let events = [
        switch(0, 0, 0, 0, A),
        switch(10, 0, A, 1, HOG),
        born,
        switch(5_000_000, 0, HOG, 1, 0),
        switch(9_000_000, 0, 0, 0, B),
    ];
    let mut follower = run(&[A], &events);
    follower.finish(Ticks(9_100_000), &Names);
    assert_eq!(
        shown(&follower.take_episodes()),
        ["wait after wake-up 1000-9000000: hog 4999000, idle exit 4000000"]
    );
}

#[test]
fn faults_count_from_the_first_measured_moment_to_the_last() {
    let fault = |time| {
        at(
            time,
            1,
            A,
            EventKind::PageFault {
                user: true,
                address: 0,
                ip: 0,
            },
        )
    };
    let mut follower = ThreadFollower::new(settings());
    follower.measure(Ticks(100), Ticks(500));
    follow(&mut follower, A);
    let events = [
        switch(0, 1, 0, 0, A),
        fault(99),
        fault(100),
        fault(500),
        fault(501),
    ];
    events
        .iter()
        .for_each(|event| follower.event(event, &Names));
    assert_eq!(follower.finish(Ticks(1000), &Names)[0].page_faults, 2);
}

/// Names of threads that belong to users: odd ids to user 1000, others to root.
struct OfUsers;

impl NameResolver for OfUsers {
    fn function(&self, addr: KernelAddr) -> Name {
        Names.function(addr)
    }

    fn comm(&self, tid: i32) -> Option<Name> {
        Names.comm(tid)
    }

    fn identity(&self, tid: i32, _: Comm) -> TaskIdentity {
        let owner = match tid {
            // A thread without a known user.
            90.. => None,
            _ if tid % 2 == 1 => Some(Owner::user(1000)),
            _ => Some(Owner::user(0)),
        };
        TaskIdentity {
            owner,
            ..TaskIdentity::default()
        }
    }
}

#[test]
fn of_a_name_that_anybody_takes_only_one_user_s_threads_are_followed() {
    let named = |user| FollowerSettings {
        names: vec![Comm::new("rx")],
        user,
        ..settings()
    };
    let rx = |tid| EventKind::TaskRename {
        tid,
        old: Comm::new("sh"),
        comm: Comm::new("rx"),
    };
    let born = |tid| EventKind::TaskNew {
        tid,
        comm: Comm::new("rx"),
        thread: false,
        into_cgroup: false,
    };
    for (user, followed) in [
        (None, vec![40, 41, 50, 51, 90]),
        (Some(1000), vec![41, 51]),
        (Some(0), vec![40, 50]),
        (Some(7), vec![]),
    ] {
        let mut follower = follower(named(user));
        for tid in [40, 41, 90] {
            follower.event(&at(100, 0, tid, rx(tid)), &OfUsers);
        }
        for tid in [50, 51] {
            follower.event(&at(200, 0, HOG, born(tid)), &OfUsers);
        }
        let mut tids = follower.take_newly_followed();
        tids.sort_unstable();
        assert_eq!(tids, followed, "{user:?}");
    }
}
