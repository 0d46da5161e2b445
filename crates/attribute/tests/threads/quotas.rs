//! CPU quotas, while other threads have the CPU.

use crate::common::*;
use jitterscope_attribute::ThreadFollower;
use jitterscope_model::{
    DrainTurn, EventKind, ExecutionContext, KernelAddr, KernelEvent, Nanos, Subject,
    ThrottledGroup, Ticks,
};

const MS: u64 = 1_000_000;
/// The functions of a group's timer and of the call that its timer makes to another CPU.
const PERIOD: u64 = 3;
const CALL: u64 = 4;

fn group(name: &str, throttled_ms: u64, times: u64) -> ThrottledGroup {
    ThrottledGroup {
        cgroup: name.into(),
        quota_us: 20_000,
        period_us: 100_000,
        times,
        throttled_us: throttled_ms * 1000,
        changed: false,
    }
}

fn counted(at: u64, throttled: &[ThrottledGroup]) -> DrainTurn {
    let groups = |levels: &[&str]| levels.iter().map(|level| (*level).into()).collect();
    DrainTurn {
        quotas_read: Ticks(at),
        members: vec![(A, groups(&["/a/b", "/a"])), (B, groups(&["/a"]))],
        throttled: throttled.to_vec(),
        ..DrainTurn::default()
    }
}

fn in_interrupt(time: u64, cpu: u32, current: i32, kind: EventKind) -> KernelEvent {
    KernelEvent {
        context: ExecutionContext::Interrupt,
        ..at(time, cpu, current, kind)
    }
}

/// The timer that renews the group's quota.
fn timer(time: u64, current: i32) -> [KernelEvent; 2] {
    let kinds = [
        EventKind::HrtimerEntry {
            hrtimer: 7,
            function: KernelAddr(PERIOD),
            now: Nanos(time),
        },
        EventKind::HrtimerExit { hrtimer: 7 },
    ];
    kinds.map(|kind| in_interrupt(time, 1, current, kind))
}

struct Followed(ThreadFollower);

impl Followed {
    fn new() -> Followed {
        let mut follower = ThreadFollower::new(settings());
        follower.measure(Ticks(0), Ticks(u64::MAX));
        follow(&mut follower, A);
        follower.quotas(&counted(1, &[]));
        Followed(follower)
    }

    fn turn(&mut self, read: u64, throttled: &[ThrottledGroup], events: &[KernelEvent]) {
        self.0.quotas(&counted(read, throttled));
        events.iter().for_each(|event| self.0.event(event, &Names));
    }

    /// Its slices: the culprit of each, and the length in microseconds.
    fn reported(mut self) -> Vec<String> {
        self.0.finish(Ticks(1000 * MS), &Names);
        let episodes = self.0.take_episodes();
        let slices = episodes.iter().flat_map(|episode| &episode.slices);
        let charged = slices.map(|slice| {
            let name = match &slice.culprit.subject {
                Subject::Quota(quota) => {
                    let beside = quota.beside.as_ref();
                    let beside =
                        beside.map_or_else(String::new, |task| format!(" beside {}", task.comm));
                    format!("{}{beside}", quota.cgroup)
                }
                other => other.name().into_owned(),
            };
            format!("{name} {}", slice.end.since(slice.start).0 / 1000)
        });
        charged.collect()
    }
}

fn flat<const N: usize>(events: [Vec<KernelEvent>; N]) -> Vec<KernelEvent> {
    events.into_iter().flatten().collect()
}

#[test]
fn throttled_time_is_the_quotas_up_to_its_timer() {
    let mut followed = Followed::new();
    let first = flat([
        vec![switch(10, 1, 0, 0, A)],
        // The hog's own turn, before the quota is used up.
        vec![switch(10 * MS, 1, A, 0, HOG), switch(14 * MS, 1, HOG, 0, A)],
        vec![switch(40 * MS, 1, A, 0, HOG)],
    ]);
    followed.turn(50 * MS, &[], &first);
    let second = flat([
        timer(100 * MS, HOG).to_vec(),
        vec![switch(103 * MS, 1, HOG, 0, A)],
        // Within the turn in which the count rose, and after it.
        vec![
            switch(110 * MS, 1, A, 0, HOG),
            switch(114 * MS, 1, HOG, 0, A),
        ],
    ]);
    followed.turn(120 * MS, &[group("/a", 60, 1)], &second);
    assert_eq!(
        followed.reported(),
        ["hog 4000", "/a beside hog 60000", "hog 3000", "hog 4000"]
    );
}

/// The group's timer fires while the quota is still used up; a process ends the throttling by writing the quota.
#[test]
fn a_written_quota_ends_throttling_without_a_record() {
    let reported = |changed| {
        let mut followed = Followed::new();
        let events = flat([
            vec![switch(10, 1, 0, 0, A), switch(10 * MS, 1, A, 0, HOG)],
            timer(14 * MS, HOG).to_vec(),
            vec![switch(40 * MS, 1, HOG, 0, A)],
        ]);
        let counted = ThrottledGroup {
            changed,
            ..group("/a", 25, 1)
        };
        followed.turn(50 * MS, &[counted], &events);
        let slices = followed.reported().into_iter();
        let own = slices.filter(|slice| slice.contains("hog"));
        own.collect::<Vec<_>>()
    };
    assert_eq!(reported(true), ["/a beside hog 25000", "hog 5000"]);
    assert_eq!(reported(false), ["/a beside hog 4000", "hog 26000"]);
}

#[test]
fn a_call_from_another_cpu_ends_throttling_as_the_timer_does() {
    let mut followed = Followed::new();
    let call = |time, kind| in_interrupt(time, 1, HOG, kind);
    let (function, csd) = (KernelAddr(CALL), 9);
    let events = [
        switch(10, 1, 0, 0, A),
        switch(10 * MS, 1, A, 0, HOG),
        call(60 * MS, EventKind::CsdEntry { function, csd }),
        call(60 * MS + 2000, EventKind::CsdExit { function, csd }),
        switch(64 * MS, 1, HOG, 0, A),
    ];
    // Other CPUs of the group were throttled, too.
    followed.turn(70 * MS, &[group("/a/b", 150, 1)], &events);
    assert_eq!(
        followed.reported(),
        [
            "/a/b beside hog 50000",
            "__cfsb_csd_unthrottle 2",
            "hog 3998"
        ]
    );
}

#[test]
fn no_more_is_charged_to_a_quota_than_was_counted() {
    // The timer of another group comes at the very end.
    let mut followed = Followed::new();
    let events = flat([
        vec![switch(10, 1, 0, 0, A), switch(10 * MS, 1, A, 0, HOG)],
        timer(90 * MS, HOG).to_vec(),
        vec![switch(90 * MS + 1000, 1, HOG, 0, A)],
    ]);
    followed.turn(100 * MS, &[group("/a", 30, 1)], &events);
    assert_eq!(followed.reported(), ["/a beside hog 30000", "hog 50001"]);
}

#[test]
fn each_level_has_the_share_that_its_own_count_rose_by() {
    let wait = |next: i32| {
        flat([
            vec![switch(10, 1, 0, 0, A), switch(10 * MS, 1, A, 0, next)],
            timer(90 * MS, next).to_vec(),
            vec![switch(90 * MS + 5, 1, next, 0, A)],
        ])
    };
    let reported = |next, throttled: &[ThrottledGroup]| {
        let mut followed = Followed::new();
        followed.turn(100 * MS, throttled, &wait(next));
        followed.reported()
    };
    let both = [group("/a/b", 20, 1), group("/a", 60, 1)];
    assert_eq!(
        reported(HOG, &both),
        ["/a/b beside hog 20000", "/a beside hog 60000", "hog 0"]
    );
    assert_eq!(reported(0, &both)[..2], ["/a/b 20000", "/a 60000"]);
    // B is in the outer group, which is not throttled where it runs.
    assert_eq!(reported(B, &both), ["/a/b beside b 20000", "b 60000"]);
    assert_eq!(reported(B, &both[1..]), ["b 80000"]);
}

#[test]
fn a_group_is_not_throttled_before_a_member_of_it_left_the_cpu() {
    let mut followed = Followed::new();
    let events = flat([
        vec![switch(10, 1, 0, 0, A), switch(10 * MS, 1, A, 0, HOG)],
        vec![switch(14 * MS, 1, HOG, 0, B), switch(18 * MS, 1, B, 0, HOG)],
        // Since Linux 6.18 each thread of the group still gets the CPU for the moment in which it removes itself from
        // the run queue.
        vec![
            switch(30 * MS, 1, HOG, 0, B),
            switch(30 * MS + 5000, 1, B, 0, HOG),
        ],
        timer(90 * MS, HOG).to_vec(),
        vec![switch(93 * MS, 1, HOG, 0, A)],
    ]);
    followed.turn(100 * MS, &[group("/a", 72, 1)], &events);
    assert_eq!(
        followed.reported(),
        [
            "hog 4000",
            "b 4000",
            "/a beside hog 12000",
            "b 5",
            "/a beside hog 59995",
            "hog 3000"
        ]
    );
}

#[test]
fn a_quota_that_somebody_raised_has_no_timer_and_is_charged_by_its_count() {
    let mut followed = Followed::new();
    let timed = flat([
        vec![switch(10, 1, 0, 0, A), switch(10 * MS, 1, A, 0, HOG)],
        timer(40 * MS, HOG).to_vec(),
        vec![switch(41 * MS, 1, HOG, 0, A)],
    ]);
    followed.turn(50 * MS, &[group("/a", 30, 1)], &timed);
    let raised = [switch(60 * MS, 1, A, 0, HOG), switch(90 * MS, 1, HOG, 0, A)];
    followed.turn(100 * MS, &[group("/a", 25, 0)], &raised);
    assert_eq!(
        followed.reported(),
        [
            "/a beside hog 30000",
            "hog 1000",
            "/a beside hog 25000",
            "hog 5000"
        ]
    );
}

#[test]
fn a_wait_that_began_while_the_group_was_throttled_is_the_quotas() {
    let mut followed = Followed::new();
    let events = flat([
        vec![switch(10, 1, 0, 0, A), switch(10 * MS, 1, A, 1, HOG)],
        vec![waking(50 * MS, 0, 500, A, 1)],
        timer(90 * MS, HOG).to_vec(),
        vec![switch(92 * MS, 1, HOG, 0, A)],
    ]);
    followed.turn(100 * MS, &[group("/a/b", 80, 1)], &events);
    assert_eq!(followed.reported(), ["/a/b beside hog 40000", "hog 2000"]);
    let mut waited = Followed::new();
    waited.turn(100 * MS, &[], &events);
    assert_eq!(waited.reported(), ["hog 42000"]);
}

#[test]
fn of_a_quota_that_was_taken_away_no_wait_has_what_another_was_given() {
    let mut followed = Followed::new();
    let first = flat([
        vec![switch(10, 1, 0, 0, A)],
        timer(20 * MS, A).to_vec(),
        vec![switch(30 * MS, 1, A, 0, HOG)],
        timer(54 * MS, HOG).to_vec(),
        vec![switch(56 * MS, 1, HOG, 0, A)],
        vec![switch(60 * MS, 1, A, 0, HOG)],
    ]);
    // The group's timer ends 24 ms of throttling; then the quota is removed, which ends 8 ms more.
    followed.turn(57 * MS, &[group("/a", 24, 1)], &first);
    let second = flat([
        vec![switch(72 * MS, 1, HOG, 0, A)],
        vec![switch(76 * MS, 1, A, 0, HOG), switch(80 * MS, 1, HOG, 0, A)],
    ]);
    let taken = ThrottledGroup {
        quota_us: 0,
        ..group("/a", 8, 1)
    };
    followed.turn(100 * MS, &[taken], &second);
    assert_eq!(
        followed.reported(),
        [
            "/a beside hog 24000",
            "hog 2000",
            "/a beside hog 8000",
            "hog 4000",
            "hog 4000",
        ]
    );
}
