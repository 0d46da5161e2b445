//! The owners of a watched CPU: named by the user, or found by watching it before the measurement (the look).

use super::settings::Owners;
use crate::groups::group_of;
use crate::threads::{FollowError, Followed, Found, threads_of};
use jitterscope_attribute::{Belonging, Shares, Start};
use jitterscope_model::{
    ChosenThread, Comm, CpuId, GroupPath, Name, NamedGroup, Nanos, ThreadRef, TickRate, Ticks,
};
use jitterscope_platform::{Machine, TaskStat};

/// The current threads of the owners that the user named. A name may have no thread yet.
pub(super) fn named(machine: &Machine, owners: &Owners) -> Result<Vec<Belonging>, FollowError> {
    let target = match owners {
        Owners::Largest => return Ok(Vec::new()),
        Owners::Group(group) => return Ok(all_in(machine, group)),
        Owners::Process(pid) => Followed::Process(*pid),
        Owners::Named(name) => Followed::Named {
            name: name.clone(),
            user: None,
        },
    };
    Ok(threads_of(machine, &target)?
        .into_iter()
        .map(belonging)
        .collect())
}

fn belonging(found: Found) -> Belonging {
    Belonging {
        thread: found.following.thread,
        on: None,
        asleep: found.following.start != Start::Unknown,
    }
}

/// All current threads of control groups. A process that ends meanwhile has none.
fn all_in(machine: &Machine, group: &NamedGroup) -> Vec<Belonging> {
    let names = machine.list("/proc").into_iter();
    let processes = names.filter_map(|name| name.parse::<i32>().ok());
    processes
        .flat_map(|pid| those_in(machine, group, pid))
        .collect()
}

/// The threads that entered the owners' control groups, among those that moved. A record of a move names a process by its
/// first thread. One to another group costs no look into `/proc`: any user may move threads between groups of their own.
pub(super) fn entered(
    machine: &Machine,
    owners: &Owners,
    moved: &[(i32, Option<Name>)],
) -> Vec<Belonging> {
    let Owners::Group(group) = owners else {
        return Vec::new();
    };
    let may_be_in = |path: &Option<Name>| {
        path.as_ref()
            .is_none_or(|path| group.contains(GroupPath(path)))
    };
    let looked_at = moved.iter().filter(|(_, path)| may_be_in(path));
    looked_at
        .flat_map(|(tid, _)| those_in(machine, group, *tid))
        .collect()
}

/// The threads of a process that are in control groups.
fn those_in(machine: &Machine, group: &NamedGroup, tid: i32) -> Vec<Belonging> {
    let threads = threads_of(machine, &Followed::Process(tid)).unwrap_or_default();
    let is_in = |tid: i32| {
        let text = machine.read(format!("/proc/{tid}/cgroup")).ok();
        let path = text.and_then(|text| group_of(&text));
        path.is_some_and(|path| group.contains(GroupPath(&path)))
    };
    threads
        .into_iter()
        .map(belonging)
        .filter(|of| is_in(of.thread.tid))
        .collect()
}

/// The thread with the largest share of a CPU in a look, except kernel threads, our own threads and threads that have
/// ended since.
pub(super) fn largest(
    machine: &Machine,
    shares: &Shares,
    cpu: CpuId,
    (from, until): (Ticks, Ticks),
    rate: TickRate,
) -> Option<(Belonging, ChosenThread)> {
    let ours = machine.list("/proc/self/task");
    let is_ours = |tid: i32| ours.iter().any(|name| name.parse() == Ok(tid));
    let (thread, ran) = shares
        .largest(cpu, until)
        .into_iter()
        .find(|(thread, _)| !is_ours(thread.tid) && is_live_and_users(machine, thread.tid))?;
    let mut thread = thread;
    if thread.comm == Comm::default() {
        // It had the CPU all the time, so no switch recorded its name.
        let name = machine
            .read_trimmed(format!("/proc/{}/comm", thread.tid))
            .unwrap_or_default();
        thread = ThreadRef {
            comm: Comm::new(&name),
            ..thread
        };
    }
    let look: Nanos = rate.nanos(until.since(from));
    let share = rate.nanos(ran).0 as f64 / look.0.max(1) as f64;
    let chosen = ChosenThread {
        tid: thread.tid,
        comm: thread.comm.to_string(),
        share: share.min(1.0),
        look_ns: look,
    };
    Some((
        Belonging {
            thread,
            on: Some(cpu),
            asleep: false,
        },
        chosen,
    ))
}

/// Whether the thread exists and is not a kernel thread.
fn is_live_and_users(machine: &Machine, tid: i32) -> bool {
    TaskStat::of(machine, tid).is_some_and(|stat| {
        stat.has_ended() == Some(false) && stat.is_kernel_thread() == Some(false)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{EventKind, ExecutionContext, KernelEvent, TaskRef};
    use std::fs;

    fn switch(at: u64, prev: i32, next: i32) -> KernelEvent {
        let task = |tid: i32| TaskRef {
            tid,
            comm: Comm::new(&format!("t{tid}")),
            prio: 120,
        };
        let kind = EventKind::SchedSwitch {
            prev: task(prev),
            prev_state: 1,
            next: task(next),
        };
        KernelEvent {
            time: Ticks(at),
            cpu: CpuId(1),
            tid: prev,
            context: ExecutionContext::Thread,
            kind,
        }
    }

    #[test]
    fn the_owner_has_the_largest_share_of_living_user_threads() {
        let dir = tempfile::tempdir().unwrap();
        for (tid, flags) in [(7, 0x0020_8040_u64), (8, 0x40_0000), (9, 0x40_0000)] {
            let folder = dir.path().join(format!("proc/{tid}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(
                folder.join("stat"),
                format!("{tid} (a) b) R 2 0 0 0 -1 {flags} 0 0"),
            )
            .unwrap();
        }
        let machine = Machine::at(dir.path());
        let mut shares = Shares::new(Ticks(0));
        // Thread 7 for 500, idle for 100, 6, which has ended, for 200, 8 for 50, 9 for 150.
        for event in [
            switch(500, 7, 0),
            switch(600, 0, 6),
            switch(800, 6, 8),
            switch(850, 8, 9),
            switch(1000, 9, 0),
        ] {
            shares.event(&event);
        }
        let look = (Ticks(0), Ticks(1000));
        let (who, chosen) =
            largest(&machine, &shares, CpuId(1), look, TickRate::NANOSECONDS).unwrap();
        assert_eq!(
            (who.thread.tid, who.on, chosen.comm.as_str()),
            (9, Some(CpuId(1)), "t9")
        );
        assert!((chosen.share - 0.15).abs() < 1e-9, "{}", chosen.share);
        assert!(largest(&machine, &shares, CpuId(0), look, TickRate::NANOSECONDS).is_none());
    }
}
