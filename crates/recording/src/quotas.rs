//! The CPU quotas above measured and followed threads, and what the kernel counts of them turn by turn.

use jitterscope_model::{
    ClockKind, DrainTurn, EventKind, KernelEvent, Name, ThrottledGroup, Ticks,
};
use jitterscope_platform::{
    CpuQuota, Machine, Throttling, clock, cpu_quotas, read_limit, read_throttling,
};
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// How often it is looked whether threads are in other groups by now, and whether those have other quotas.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Threads that are looked at again.
const LOOKED_AT: usize = 64;
/// Threads whose groups are read in a turn because they were found runnable and did not run.
const MOST_DOUBTED: usize = 64;
/// Groups with a quota that are watched.
const MOST_GROUPS: usize = 256;
/// Threads that are watched: more than whoever follows threads takes on, who says how many he refused.
const MOST_THREADS: usize = 1 << 16;
/// Sets of groups that are remembered.
const MOST_SETS: usize = 1024;

/// Sleep and stop states of a switch; the bit above them marks a preempted task, which is runnable.
const TASK_STATES: u64 = 0xff;
/// Those of a thread that has ended.
const ENDED: u64 = 0x30;

struct Group {
    folder: String,
    unified: bool,
    counted: Throttling,
}

/// Reads them.
pub(crate) struct QuotaWatch {
    machine: Machine,
    clock: ClockKind,
    groups: BTreeMap<Name, Group>,
    /// The groups with a quota, by the text of a `/proc/PID/cgroup`.
    sets: HashMap<String, Vec<Name>>,
    /// Those of watched threads, as they were reported.
    threads: HashMap<i32, Vec<Name>>,
    /// All threads that are watched and have not ended.
    watched: FxHashSet<i32>,
    /// The first of them.
    again: Vec<i32>,
    /// Those that left their CPU though they could run, in the turn under way: where they belong decides whether
    /// a quota did that, and a thread may join a group at any time.
    doubted: BTreeSet<i32>,
    looked: Instant,
    /// Not yet reported.
    members: Vec<(i32, Vec<Name>)>,
}

impl QuotaWatch {
    pub(crate) fn new(machine: &Machine, clock: ClockKind) -> QuotaWatch {
        QuotaWatch {
            machine: machine.clone(),
            clock,
            groups: BTreeMap::new(),
            sets: HashMap::new(),
            threads: HashMap::new(),
            watched: FxHashSet::default(),
            again: Vec::new(),
            doubted: BTreeSet::new(),
            looked: Instant::now(),
            members: Vec::new(),
        }
    }

    /// Watches the quotas above a thread from now on, unless that is done already.
    pub(crate) fn watch(&mut self, tid: i32) {
        if self.watched.len() >= MOST_THREADS && !self.watched.contains(&tid) {
            return;
        }
        // Whoever begins to follow a thread says so, and who follows it does, too.
        if !self.watched.insert(tid) && self.threads.contains_key(&tid) {
            return;
        }
        if self.again.len() < LOOKED_AT && !self.again.contains(&tid) {
            self.again.push(tid);
        }
        self.look(tid);
    }

    /// Takes in a record of the turn under way.
    pub(crate) fn event(&mut self, event: &KernelEvent) {
        match &event.kind {
            // Whoever has the id now may be elsewhere than who had it, and whoever reads along takes him to be
            // where his maker is: what is found next is reported, whatever it is.
            EventKind::TaskNew { tid, .. } => drop(self.threads.remove(tid)),
            EventKind::SchedSwitch {
                prev, prev_state, ..
            } => self.left(prev.tid, *prev_state),
            _ => {}
        }
    }

    /// A thread has left its CPU.
    fn left(&mut self, tid: i32, state: u64) {
        if !self.watched.contains(&tid) {
            return;
        }
        if state & ENDED != 0 {
            self.watched.remove(&tid);
            self.threads.remove(&tid);
            self.again.retain(|other| *other != tid);
        } else if state & TASK_STATES == 0 && self.doubted.len() < MOST_DOUBTED {
            self.doubted.insert(tid);
        }
    }

    fn look(&mut self, tid: i32) {
        let Ok(text) = self.machine.read(format!("/proc/{tid}/cgroup")) else {
            return;
        };
        if !self.sets.contains_key(&text) {
            if self.sets.len() >= MOST_SETS {
                self.sets.clear();
            }
            let quotas = cpu_quotas(&self.machine, &text);
            let names = quotas
                .into_iter()
                .filter_map(|quota| self.group(quota))
                .collect();
            self.sets.insert(text.clone(), names);
        }
        let names = self.sets.get(&text).cloned().unwrap_or_default();
        // That there is no quota is reported, too: until then a thread is taken to be where its maker is.
        if self.threads.get(&tid) != Some(&names) {
            self.threads.insert(tid, names.clone());
            self.members.push((tid, names));
        }
    }

    /// Watches a group, counting from now on.
    fn group(&mut self, quota: CpuQuota) -> Option<Name> {
        let name = Name::from(quota.cgroup);
        if !self.groups.contains_key(&name) {
            if self.groups.len() >= MOST_GROUPS {
                return None;
            }
            let counted = read_throttling(&self.machine, &quota.folder)?;
            let group = Group {
                folder: quota.folder,
                unified: quota.unified,
                counted,
            };
            self.groups.insert(name.clone(), group);
        }
        Some(name)
    }

    /// What was counted since the last call, into what is kept of a turn.
    pub(crate) fn read(&mut self, turn: &mut DrainTurn) {
        let due = self.looked.elapsed() >= LOOK_AGAIN;
        let doubted = std::mem::take(&mut self.doubted);
        if due {
            // Quotas are set and taken away while we look.
            self.sets.clear();
        }
        doubted.iter().for_each(|tid| self.look(*tid));
        if due {
            self.looked = Instant::now();
            for tid in std::mem::take(&mut self.again) {
                if !doubted.contains(&tid) {
                    self.look(tid);
                }
                self.again.push(tid);
            }
        }
        turn.members.append(&mut self.members);
        if self.groups.is_empty() {
            return;
        }
        for (cgroup, group) in &mut self.groups {
            let Some(now) = read_throttling(&self.machine, &group.folder) else {
                continue;
            };
            let before = std::mem::replace(&mut group.counted, now);
            let times = now.times.saturating_sub(before.times);
            let throttled_us = now.throttled_us.saturating_sub(before.throttled_us);
            if (times, throttled_us) == (0, 0) {
                continue;
            }
            // Without a limit by now: it had one, or it was not throttled.
            let limit = read_limit(&self.machine, &group.folder, group.unified);
            turn.throttled.push(ThrottledGroup {
                cgroup: cgroup.clone(),
                quota_us: limit.map_or(0, |limit| limit.quota_us),
                period_us: limit.map_or(0, |limit| limit.period_us),
                times,
                throttled_us,
            });
        }
        turn.quotas_read = clock::now(self.clock).max(Ticks(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Comm, CpuId, ExecutionContext, TaskRef};
    use std::fs;
    use std::path::Path;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn event(tid: i32, kind: EventKind) -> KernelEvent {
        KernelEvent {
            cpu: CpuId(1),
            time: Ticks(5),
            tid,
            context: ExecutionContext::Thread,
            kind,
        }
    }

    /// A thread leaves its CPU.
    fn left(tid: i32, prev_state: u64) -> KernelEvent {
        let task = |tid| TaskRef {
            tid,
            comm: Comm::default(),
            prio: 120,
        };
        event(
            tid,
            EventKind::SchedSwitch {
                prev: task(tid),
                prev_state,
                next: task(0),
            },
        )
    }

    fn members(watch: &mut QuotaWatch) -> Vec<(i32, Vec<Name>)> {
        let mut turn = DrainTurn::default();
        watch.read(&mut turn);
        turn.members
    }

    /// Version 2, which this project's machines do not have mounted with a CPU controller.
    #[test]
    fn a_rise_of_a_unified_groups_counts_is_reported_with_its_members_and_limit() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let stat = |times: u64| {
            let text = format!(
                "usage_usec 1\nnr_periods 9\nnr_throttled {times}\nthrottled_usec {}\n",
                times * 70_000
            );
            write(root, "sys/fs/cgroup/kubepods/pod1/cpu.stat", &text);
        };
        stat(5);
        write(
            root,
            "sys/fs/cgroup/kubepods/pod1/cpu.max",
            "30000 100000\n",
        );
        write(root, "proc/42/cgroup", "0::/kubepods/pod1\n");
        write(root, "proc/43/cgroup", "0::/\n");
        let mut watch = QuotaWatch::new(&Machine::at(root), ClockKind::MonotonicRaw);
        watch.watch(42);
        watch.watch(43);
        watch.watch(44);
        let mut read = || {
            let mut turn = DrainTurn::default();
            watch.read(&mut turn);
            turn
        };
        let first = read();
        assert_eq!(
            first.members,
            [(42, vec!["/kubepods/pod1".into()]), (43, Vec::new())]
        );
        assert!(first.quotas_read > Ticks(0) && first.throttled.is_empty());
        stat(7);
        let second = read();
        let group = &second.throttled[0];
        assert_eq!(
            (group.times, group.throttled_us, group.quota_us),
            (2, 140_000, 30_000)
        );
        assert!(second.members.is_empty() && read().throttled.is_empty());
    }

    #[test]
    fn a_thread_that_was_found_runnable_and_not_running_is_looked_for_in_its_new_group_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(root, "sys/fs/cgroup/small/cpu.max", "10000 100000\n");
        write(
            root,
            "sys/fs/cgroup/small/cpu.stat",
            "nr_throttled 0\nthrottled_usec 0\n",
        );
        for tid in [42, 43, 44] {
            write(root, &format!("proc/{tid}/cgroup"), "0::/\n");
        }
        let mut watch = QuotaWatch::new(&Machine::at(root), ClockKind::MonotonicRaw);
        watch.watch(42);
        watch.watch(43);
        watch.read(&mut DrainTurn::default());
        let joined = |tid: i32| write(root, &format!("proc/{tid}/cgroup"), "0::/small\n");
        let mut members = |events: &[KernelEvent]| {
            events.iter().for_each(|event| watch.event(event));
            members(&mut watch)
        };
        [42, 43, 44].into_iter().for_each(joined);
        // Within the second in which nobody is looked for otherwise: 43 slept, 44 is nobody of ours.
        assert_eq!(members(&[left(43, 1), left(44, 0)]), []);
        assert_eq!(members(&[left(42, 0x100)]), [(42, vec!["/small".into()])]);
        assert_eq!(members(&[left(42, 0)]), []);
    }

    /// Whoever reads along takes a new thread to be in the groups of its maker.
    #[test]
    fn that_a_thread_is_in_no_group_with_a_quota_is_reported_once_and_again_of_an_id_used_again() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(root, "sys/fs/cgroup/small/cpu.max", "10000 100000\n");
        write(
            root,
            "sys/fs/cgroup/small/cpu.stat",
            "nr_throttled 0\nthrottled_usec 0\n",
        );
        write(root, "proc/42/cgroup", "0::/\n");
        write(root, "proc/43/cgroup", "0::/small\n");
        let mut watch = QuotaWatch::new(&Machine::at(root), ClockKind::MonotonicRaw);
        watch.watch(42);
        watch.watch(43);
        let small = || vec![Name::from("/small")];
        assert_eq!(members(&mut watch), [(42, Vec::new()), (43, small())]);
        watch.watch(42);
        watch.watch(43);
        assert_eq!(members(&mut watch), []);
        // Another thread has the id, made by one without a quota, and is in the group of the former.
        let comm = Comm::default();
        watch.event(&event(
            42,
            EventKind::TaskNew {
                tid: 43,
                comm,
                thread: false,
            },
        ));
        watch.watch(43);
        assert_eq!(members(&mut watch), [(43, small())]);
        // Its end was seen, its successor's beginning not.
        watch.event(&left(43, 0x10));
        assert_eq!(
            (watch.watched.len(), watch.threads.len(), watch.again.len()),
            (1, 1, 1)
        );
        watch.watch(43);
        assert_eq!(members(&mut watch), [(43, small())]);
    }

    /// Twenty times a second, for every thread that is preempted.
    #[test]
    fn what_groups_grant_is_read_once_a_second_whoever_is_preempted() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(root, "sys/fs/cgroup/a/cpu.max", "max 100000\n");
        write(
            root,
            "sys/fs/cgroup/a/cpu.stat",
            "nr_throttled 0\nthrottled_usec 0\n",
        );
        write(root, "proc/42/cgroup", "0::/a\n");
        let mut watch = QuotaWatch::new(&Machine::at(root), ClockKind::MonotonicRaw);
        watch.watch(42);
        assert_eq!(members(&mut watch), [(42, Vec::new())]);
        write(root, "sys/fs/cgroup/a/cpu.max", "10000 100000\n");
        watch.looked = Instant::now();
        watch.event(&left(42, 0));
        assert_eq!(members(&mut watch), [], "it was read again at once");
        watch.looked = Instant::now().checked_sub(2 * LOOK_AGAIN).unwrap();
        assert_eq!(members(&mut watch), [(42, vec!["/a".into()])]);
    }

    #[test]
    fn nobody_is_forgotten_when_there_are_too_many() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "proc/42/cgroup", "0::/\n");
        let mut watch = QuotaWatch::new(&Machine::at(dir.path()), ClockKind::MonotonicRaw);
        watch.watch(42);
        watch.watched.extend(1000..1000 + MOST_THREADS as i32);
        watch.watch(999);
        assert!(watch.watched.contains(&42) && !watch.watched.contains(&999));
        watch.event(&left(1000, 0x20));
        watch.event(&left(1001, 0x20));
        watch.watch(999);
        assert!(watch.watched.contains(&999));
    }

    #[test]
    fn without_a_quota_nothing_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "proc/42/cgroup", "0::/a\n");
        write(dir.path(), "sys/fs/cgroup/a/cpu.max", "max 100000\n");
        let mut watch = QuotaWatch::new(&Machine::at(dir.path()), ClockKind::MonotonicRaw);
        watch.watch(42);
        let mut turn = DrainTurn::default();
        watch.read(&mut turn);
        assert_eq!(
            turn,
            DrainTurn {
                members: vec![(42, Vec::new())],
                ..DrainTurn::default()
            }
        );
    }
}
