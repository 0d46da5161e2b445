//! The simulated machine.

use jitterscope_attribute::{
    Episode, FollowerSettings, Following, NameResolver, Start, ThreadFollower,
};
use jitterscope_model::{
    Comm, CpuId, EventKind, ExecutionContext, KernelAddr, KernelEvent, Name, TaskRef, ThreadRef,
    TickRate, Ticks,
};

pub const A: i32 = 100;
pub const B: i32 = 200;
pub const HOG: i32 = 300;

pub struct Names;

impl NameResolver for Names {
    fn function(&self, addr: KernelAddr) -> Name {
        match addr.0 {
            1 => "tick_nohz_handler".into(),
            2 => "vmstat_update".into(),
            3 => "sched_cfs_period_timer".into(),
            4 => "__cfsb_csd_unthrottle".into(),
            other => format!("f{other}").into(),
        }
    }
    fn comm(&self, tid: i32) -> Option<Name> {
        Some(comm(tid).to_string().into())
    }
}

pub fn comm(tid: i32) -> Comm {
    Comm::new(match tid {
        0 => "swapper",
        A => "a",
        B => "b",
        HOG => "hog",
        400 => "kworker/1:0",
        _ => "other",
    })
}

pub fn task(tid: i32) -> TaskRef {
    TaskRef {
        tid,
        comm: comm(tid),
        prio: 120,
    }
}

pub fn at(time: u64, cpu: u32, tid: i32, kind: EventKind) -> KernelEvent {
    KernelEvent {
        time: Ticks(time),
        cpu: CpuId(cpu),
        tid,
        context: ExecutionContext::Thread,
        kind,
    }
}

/// `prev` leaves the CPU: 0 runnable, 1 asleep, 16 dead.
pub fn switch(time: u64, cpu: u32, prev: i32, prev_state: u64, next: i32) -> KernelEvent {
    let kind = EventKind::SchedSwitch {
        prev: task(prev),
        prev_state,
        next: task(next),
    };
    at(time, cpu, prev, kind)
}

pub fn waking(time: u64, cpu: u32, waker: i32, woken: i32, target: u32) -> KernelEvent {
    at(
        time,
        cpu,
        waker,
        EventKind::SchedWaking {
            task: task(woken),
            target: CpuId(target),
        },
    )
}

pub fn migrate(time: u64, cpu: u32, tid: i32, from: u32, to: u32) -> KernelEvent {
    at(
        time,
        cpu,
        0,
        EventKind::SchedMigrate {
            task: task(tid),
            from: CpuId(from),
            to: CpuId(to),
        },
    )
}

pub fn tick(time: u64, until: u64, cpu: u32, current: i32) -> [KernelEvent; 2] {
    [
        at(
            time,
            cpu,
            current,
            EventKind::VectorEntry {
                vector: "local_timer".into(),
            },
        ),
        at(
            until,
            cpu,
            current,
            EventKind::VectorExit {
                vector: "local_timer".into(),
            },
        ),
    ]
}

pub fn settings() -> FollowerSettings {
    FollowerSettings {
        rate: TickRate::NANOSECONDS,
        join_within: Ticks(10),
        remember: Ticks(1_000_000),
        new_threads: true,
        children: false,
        names: Vec::new(),
        user: None,
        most_threads: 100,
        virtual_machine: false,
        stacks: false,
        switches: None,
    }
}

pub fn follow(follower: &mut ThreadFollower, tid: i32) {
    let thread = ThreadRef {
        tid,
        comm: comm(tid),
    };
    follower.follow(
        Following {
            thread,
            role: None,
            start: Start::Unknown,
        },
        Ticks(0),
    );
}

/// Follows `tids` through `events`, measuring from 0.
pub fn run(tids: &[i32], events: &[KernelEvent]) -> ThreadFollower {
    let mut follower = ThreadFollower::new(settings());
    follower.measure(Ticks(0), Ticks(u64::MAX));
    for tid in tids {
        follow(&mut follower, *tid);
    }
    for event in events {
        follower.event(event, &Names);
    }
    follower
}

/// `kind start-end: name length, ...` of each episode.
pub fn shown(episodes: &[Episode]) -> Vec<String> {
    episodes
        .iter()
        .map(|episode| {
            let slices: Vec<String> = episode
                .slices
                .iter()
                .map(|s| format!("{} {}", s.culprit.subject.name(), s.end.since(s.start).0))
                .collect();
            let kind = episode.kind.phase();
            format!(
                "{kind} {}-{}: {}",
                episode.start.0,
                episode.end.0,
                slices.join(", ")
            )
        })
        .collect()
}
