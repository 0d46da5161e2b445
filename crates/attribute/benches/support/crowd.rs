//! Threads that compete for one CPU, for a bench and for tests. Each user imports the follower from its own path.

use super::{FollowerSettings, NameResolver, ThreadFollower};
use jitterscope_model::{
    Comm, CpuId, EventKind, ExecutionContext, KernelAddr, KernelEvent, Name, TaskRef, TickRate,
    Ticks,
};

pub struct Names;

impl NameResolver for Names {
    fn function(&self, addr: KernelAddr) -> Name {
        format!("f{}", addr.0).into()
    }

    fn comm(&self, _tid: i32) -> Option<Name> {
        Some("worker".into())
    }
}

pub fn task(tid: i32) -> TaskRef {
    TaskRef {
        tid,
        comm: Comm::new("worker"),
        prio: 120,
    }
}

pub fn at(time: u64, tid: i32, kind: EventKind) -> KernelEvent {
    KernelEvent {
        time: Ticks(time),
        cpu: CpuId(0),
        tid,
        context: ExecutionContext::Thread,
        kind,
    }
}

/// A follower that measures from the first record on.
pub fn follower() -> ThreadFollower {
    let mut follower = ThreadFollower::new(FollowerSettings {
        rate: TickRate::NANOSECONDS,
        join_within: Ticks(0),
        remember: Ticks(0),
        new_threads: false,
        children: false,
        names: Vec::new(),
        user: None,
        most_threads: 1 << 20,
        virtual_machine: false,
        stacks: false,
        switches: None,
    });
    follower.measure(Ticks(0), Ticks(u64::MAX));
    follower
}
