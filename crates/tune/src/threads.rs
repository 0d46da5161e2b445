//! The machine's threads and their affinities, from `/proc`.

use jitterscope_model::{CpuSet, Nanos};
use jitterscope_platform::{Machine, TaskStat};
use std::collections::BTreeMap;

/// The affinity cannot be set from outside (`PF_NO_SETAFFINITY`).
const PF_NO_SETAFFINITY: u64 = 0x0400_0000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    pub pid: i32,
    pub tid: i32,
    pub comm: String,
    /// Start time, clock ticks since boot: distinguishes a thread from a later one with the same id.
    pub start_time: u64,
    pub allowed: CpuSet,
    /// Whether it is a kernel thread.
    pub kernel: bool,
    /// Whether the kernel has bound it permanently.
    pub bound: bool,
}

impl Thread {
    /// Time from the boot to its start, rounded down to the kernel's hundredths of a second (`USER_HZ`).
    pub(crate) fn started(&self) -> Nanos {
        Nanos(self.start_time.saturating_mul(TICK.0))
    }
}

/// The unit of a start time.
pub(crate) const TICK: Nanos = Nanos(10_000_000);

/// All visible threads. Skips threads that end meanwhile.
#[must_use]
pub fn all(machine: &Machine) -> Vec<Thread> {
    let mut threads = Vec::new();
    for pid in numbers(machine, "/proc") {
        for tid in numbers(machine, &format!("/proc/{pid}/task")) {
            threads.extend(read(machine, pid, tid));
        }
    }
    threads
}

/// The names of all visible processes, with their ids.
#[must_use]
pub fn processes(machine: &Machine) -> Vec<(i32, String)> {
    numbers(machine, "/proc")
        .into_iter()
        .filter_map(|pid| Some((pid, machine.read_trimmed(format!("/proc/{pid}/comm")).ok()?)))
        .collect()
}

/// The parent of each process.
#[must_use]
pub fn parents(machine: &Machine) -> BTreeMap<i32, i32> {
    numbers(machine, "/proc")
        .into_iter()
        .filter_map(|pid| Some((pid, TaskStat::of(machine, pid)?.parent()?)))
        .collect()
}

/// One thread; `None` if it is gone or its files cannot be parsed.
#[must_use]
pub fn read(machine: &Machine, pid: i32, tid: i32) -> Option<Thread> {
    let stat = TaskStat::of_thread(machine, pid, tid)?;
    let (flags, start_time) = (stat.flags()?, stat.start_time()?);
    let status = machine
        .read(format!("/proc/{pid}/task/{tid}/status"))
        .ok()?;
    let allowed = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?
        .trim()
        .parse()
        .ok()?;
    Some(Thread {
        pid,
        tid,
        comm: stat.name().to_owned(),
        start_time,
        allowed,
        kernel: stat.is_kernel_thread()?,
        bound: flags & PF_NO_SETAFFINITY != 0,
    })
}

fn numbers(machine: &Machine, folder: &str) -> Vec<i32> {
    let mut ids: Vec<i32> = machine
        .list(folder)
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    ids.sort_unstable();
    ids
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_machine::FakeMachine;

    const PF_KTHREAD: u64 = 0x0020_0000;

    #[test]
    fn our_own_threads_are_seen() {
        let me = i32::try_from(std::process::id()).unwrap();
        let threads = all(&Machine::host());
        let mine: Vec<_> = threads.iter().filter(|t| t.pid == me).collect();
        assert!(!mine.is_empty());
        assert!(
            mine.iter()
                .all(|t| !t.kernel && !t.bound && !t.allowed.is_empty())
        );
    }

    #[test]
    fn threads_are_listed_with_process_age_and_possible_action() {
        let stat = |flags: u64, parent| {
            format!("9 (x) S {parent} 0 0 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0\n")
        };
        let status = |cpus| format!("Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t{cpus}\n");
        let (user, kernel, bound) = (
            stat(0, 1),
            stat(PF_KTHREAD, 2),
            stat(PF_KTHREAD | PF_NO_SETAFFINITY, 2),
        );
        let fake = FakeMachine::of(&[
            ("/proc/20/task/21/stat", &user),
            ("/proc/20/task/21/status", &status("0-3")),
            ("/proc/20/task/20/stat", &kernel),
            ("/proc/20/task/20/status", &status("2")),
            ("/proc/3/task/3/stat", &bound),
            ("/proc/3/task/3/status", &status("1")),
            // A thread that has just ended, and an entry that is not a process.
            ("/proc/4/task/4/stat", &user),
            ("/proc/self/task/5/stat", &user),
            ("/proc/20/stat", &user),
            ("/proc/3/stat", &kernel),
            ("/proc/20/comm", "twenty\n"),
            ("/proc/3/comm", "three\n"),
        ]);
        let machine = &fake.machine;
        let reported = |t: Thread| {
            (
                t.pid,
                t.tid,
                t.start_time,
                t.allowed.to_string(),
                t.kernel,
                t.bound,
            )
        };
        assert_eq!(
            all(machine).into_iter().map(reported).collect::<Vec<_>>(),
            [
                (3, 3, 77, "1".into(), true, true),
                (20, 20, 77, "2".into(), true, false),
                (20, 21, 77, "0-3".into(), false, false),
            ]
        );
        assert_eq!(
            processes(machine),
            [(3, "three".into()), (20, "twenty".into())]
        );
        assert_eq!(parents(machine), BTreeMap::from([(3, 2), (20, 1)]));
    }
}
