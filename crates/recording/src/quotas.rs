//! The control groups above measured and followed threads: the kernel's counters of their CPU quotas, read every turn,
//! and whether a process freezes them.

use crate::quota_counts::{Group, SharedCounts};
use jitterscope_model::{ClockKind, DrainTurn, EventKind, KernelEvent, Name, Ticks};
use jitterscope_platform::{
    CpuGroup, CpuGroupCounts, Machine, Watched, WriteWatch, clock, cpu_groups,
};
use rustc_hash::FxHashSet;
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// How often the groups above a group are read again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Limit on threads whose groups are read again, because threads may change groups.
const LOOKED_AT: usize = 64;
/// How many of those are read in a turn.
const LOOKED_AT_IN_A_TURN: usize = 4;
/// Limit per turn on threads whose groups are read because they were runnable and did not run.
const MOST_DOUBTED: usize = 64;
/// Limit on watched groups, with a quota or without one: a group may get a quota at any time.
const MOST_GROUPS: usize = 256;
const MOST_UNLIMITED: usize = 32;
/// Limit on watched threads: more than a follower accepts, which reports how many it refused.
const MOST_THREADS: usize = 1 << 16;
/// Limit on remembered sets of groups.
const MOST_SETS: usize = 1024;

/// Sleep and stop states of a switch; the next higher bit marks a preempted task, which is runnable.
const TASK_STATES: u64 = 0xff;
/// States of a thread that has ended.
const ENDED: u64 = 0x30;

pub(crate) struct QuotaWatch {
    machine: Machine,
    clock: ClockKind,
    counts: SharedCounts,
    /// The files that freeze groups, and those that set their quotas.
    files: WriteWatch,
    /// The watched groups and their freezers, keyed by the text of `/proc/PID/cgroup`.
    sets: HashMap<String, (Vec<Name>, Vec<Watched>)>,
    /// The groups of watched threads, as last reported.
    threads: HashMap<i32, Vec<Name>>,
    /// The freezers above watched threads.
    frozen_by: HashMap<i32, Vec<Watched>>,
    /// All watched threads that have not ended.
    watched: FxHashSet<i32>,
    /// The first of the watched threads, read again in rotation.
    again: Vec<i32>,
    /// Threads that left their CPU while runnable in the current turn. Their groups decide whether a quota caused that,
    /// and a thread may change groups at any time.
    doubted: BTreeSet<i32>,
    looked: Instant,
    /// Memberships not yet reported.
    members: Vec<(i32, Vec<Name>)>,
    /// Threads that changed groups; the new groups may be frozen already.
    moved: BTreeSet<i32>,
}

impl QuotaWatch {
    pub(crate) fn new(machine: &Machine, clock: ClockKind) -> QuotaWatch {
        QuotaWatch {
            machine: machine.clone(),
            clock,
            counts: SharedCounts::new(clock),
            files: WriteWatch::new(machine),
            sets: HashMap::new(),
            threads: HashMap::new(),
            frozen_by: HashMap::new(),
            watched: FxHashSet::default(),
            again: Vec::new(),
            doubted: BTreeSet::new(),
            looked: Instant::now(),
            members: Vec::new(),
            moved: BTreeSet::new(),
        }
    }

    /// Watches the quotas above a thread from now on, if it is not watched yet.
    pub(crate) fn watch(&mut self, tid: i32) {
        if self.watched.len() >= MOST_THREADS && !self.watched.contains(&tid) {
            return;
        }
        // Both the code that starts following a thread and its follower call this.
        if !self.watched.insert(tid) && self.threads.contains_key(&tid) {
            return;
        }
        if self.again.len() < LOOKED_AT && !self.again.contains(&tid) {
            self.again.push(tid);
        }
        self.look(tid);
    }

    /// Takes a record of the current turn.
    pub(crate) fn event(&mut self, event: &KernelEvent) {
        match &event.kind {
            // The id's new thread may be in other groups than its last one, and a reader assumes that it is in its
            // maker's groups. So the next membership found is always reported.
            EventKind::TaskNew { tid, .. } => drop(self.threads.remove(tid)),
            EventKind::SchedSwitch {
                prev, prev_state, ..
            } => self.left(prev.tid, *prev_state),
            _ => {}
        }
    }

    fn left(&mut self, tid: i32, state: u64) {
        if !self.watched.contains(&tid) {
            return;
        }
        if state & ENDED != 0 {
            self.watched.remove(&tid);
            self.threads.remove(&tid);
            self.frozen_by.remove(&tid);
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
            let groups = cpu_groups(&self.machine, &text);
            let names = groups.into_iter().filter_map(|group| self.group(group));
            let names = names.collect();
            let freezers = self.files.freezers_above(&text);
            self.sets.insert(text.clone(), (names, freezers));
        }
        let (names, freezers) = self.sets.get(&text).cloned().unwrap_or_default();
        // An empty set is reported, too: until then a reader assumes that the thread is in its maker's groups.
        if self.threads.get(&tid) != Some(&names) {
            self.threads.insert(tid, names.clone());
            self.members.push((tid, names));
        }
        let before = self.frozen_by.insert(tid, freezers.clone());
        if before.is_some_and(|before| before != freezers) {
            self.moved.insert(tid);
        }
    }

    /// Watches a group, counting from now on.
    fn group(&mut self, group: CpuGroup) -> Option<Name> {
        let name = Name::from(group.cgroup.clone());
        let mut counts = self.counts.lock();
        if !counts.groups.contains_key(&name) {
            let most = if group.limit.is_some() {
                MOST_GROUPS
            } else {
                MOST_UNLIMITED
            };
            if counts.groups.len() >= most {
                return None;
            }
            let limit = self.files.watch(&group.limit_file());
            let group = Group::of(CpuGroupCounts::of(&self.machine, group), limit)?;
            counts.groups.insert(name.clone(), group);
        }
        Some(name)
    }

    /// Watched threads that may have been frozen or thawed since the last call, given the files that were written to.
    fn frozen(&mut self, written: &BTreeSet<Watched>) -> Vec<i32> {
        let mut found = std::mem::take(&mut self.moved);
        if !written.is_empty() {
            let of = |by: &[Watched]| by.iter().any(|freezer| written.contains(freezer));
            let all = self.frozen_by.iter().filter(|(_, by)| of(by));
            found.extend(all.map(|(tid, _)| *tid));
        }
        found.into_iter().collect()
    }

    /// Also reads the counts between turns, as soon as there is a group.
    pub(crate) fn read_between_turns(&mut self) {
        self.counts.read_between_turns();
    }

    /// Adds everything counted since the last call to the stored turn.
    pub(crate) fn read(&mut self, turn: &mut DrainTurn) {
        let due = self.looked.elapsed() >= LOOK_AGAIN;
        let doubted = std::mem::take(&mut self.doubted);
        if due {
            // Quotas may be set and removed while the recording runs.
            self.sets.clear();
        }
        if due {
            self.looked = Instant::now();
        }
        doubted.iter().for_each(|tid| self.look(*tid));
        let now = self.again.iter().take(LOOKED_AT_IN_A_TURN);
        let now: Vec<i32> = now.copied().collect();
        self.again.rotate_left(now.len());
        for tid in now.iter().filter(|tid| !doubted.contains(tid)) {
            self.look(*tid);
        }
        turn.members.append(&mut self.members);
        let mut counts = self.counts.lock();
        let gone;
        (turn.quota_reads, turn.throttled, gone) = counts.end_turn();
        // After the counts: a write that ended throttling is noted after it has counted.
        let written = self.files.written();
        let reads = turn
            .quota_reads
            .iter_mut()
            .flat_map(|read| &mut read.throttled);
        for throttled in reads.chain(&mut turn.throttled) {
            let group = counts.groups.get(&throttled.cgroup);
            let limit = group.and_then(|group| group.limit);
            throttled.changed = limit.is_some_and(|limit| written.contains(&limit));
        }
        let has_groups = !(counts.groups.is_empty() && gone.is_empty());
        drop(counts);
        if !gone.is_empty() {
            self.sets.clear();
        }
        turn.frozen = self.frozen(&written);
        let holds = |tid: &&i32| {
            let by = self.frozen_by.get(*tid).into_iter().flatten();
            by.into_iter().any(|file| self.files.holds(*file))
        };
        turn.held = turn.frozen.iter().filter(holds).copied().collect();
        if !has_groups && turn.frozen.is_empty() {
            return;
        }
        turn.quotas_read = clock::now(self.clock).max(Ticks(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Comm, CpuId, ExecutionContext, TaskRef, ThrottledGroup};
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

    /// Version 2, which this project's machines do not mount with a CPU controller.
    #[test]
    fn a_throttled_v2_group_is_reported_with_members_and_limit() {
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
    fn a_runnable_thread_is_found_in_its_new_group_at_once() {
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
        // The threads in the rotation are others.
        (0..LOOKED_AT as i32).for_each(|other| watch.watch(1000 + other));
        watch.watch(42);
        watch.watch(43);
        watch.read(&mut DrainTurn::default());
        let joined = |tid: i32| write(root, &format!("proc/{tid}/cgroup"), "0::/small\n");
        let mut members = |events: &[KernelEvent]| {
            events.iter().for_each(|event| watch.event(event));
            members(&mut watch)
        };
        [42, 43, 44].into_iter().for_each(joined);
        // No other thread is read: 43 slept, and 44 is not watched.
        assert_eq!(members(&[left(43, 1), left(44, 0)]), []);
        assert_eq!(members(&[left(42, 0x100)]), [(42, vec!["/small".into()])]);
        assert_eq!(members(&[left(42, 0)]), []);
    }

    /// A reader assumes that a new thread is in the groups of its maker.
    #[test]
    fn a_thread_without_quota_is_reported_once_per_use_of_its_id() {
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
        // Another thread has the id. Its maker has no quota, and it is in the first thread's group.
        let comm = Comm::default();
        watch.event(&event(
            42,
            EventKind::TaskNew {
                tid: 43,
                comm,
                thread: false,
                into_cgroup: false,
            },
        ));
        watch.watch(43);
        assert_eq!(members(&mut watch), [(43, small())]);
        // Its end was recorded, but not the start of its successor.
        watch.event(&left(43, 0x10));
        assert_eq!(
            (watch.watched.len(), watch.threads.len(), watch.again.len()),
            (1, 1, 1)
        );
        watch.watch(43);
        assert_eq!(members(&mut watch), [(43, small())]);
    }

    #[test]
    fn a_quota_that_is_set_and_taken_away_again_between_two_turns_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let grants = |text: &str| write(root, "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", text);
        let counts = |times: u64, ns: u64| {
            let text = format!("nr_throttled {times}\nthrottled_time {ns}\n");
            write(root, "sys/fs/cgroup/cpu/a/cpu.stat", &text);
        };
        write(root, "sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "32000\n");
        grants("-1\n");
        counts(0, 0);
        write(root, "proc/42/cgroup", "1:cpu:/a\n");
        let mut watch = QuotaWatch::new(&Machine::at(root), ClockKind::MonotonicRaw);
        watch.watch(42);
        let mut read = || {
            let mut turn = DrainTurn::default();
            watch.read(&mut turn);
            turn.throttled
        };
        assert_eq!(read(), []);
        grants("8000\n");
        counts(1, 24_000_000);
        let set = read();
        grants("-1\n");
        counts(2, 40_000_000);
        let taken = read();
        let of = |found: &[ThrottledGroup]| {
            let of = |group: &ThrottledGroup| {
                let counts = (group.times, group.throttled_us);
                (group.quota_us, counts, group.changed)
            };
            found.iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(of(&set), [(8000, (1, 24_000), true)]);
        assert_eq!(of(&taken), [(0, (1, 16_000), true)]);
        assert_eq!(read(), []);
        // Raised and lowered again before anyone reads it.
        grants("8000\n");
        counts(2, 40_000_000);
        read();
        counts(3, 48_000_000);
        assert_eq!(of(&read()), [(8000, (1, 8_000), false)]);
        grants("90000\n");
        grants("8000\n");
        counts(4, 58_000_000);
        assert_eq!(of(&read()), [(8000, (1, 10_000), true)]);
    }

    #[test]
    fn a_frozen_group_and_a_move_to_another_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let freeze = |group: &str, text: &str| {
            write(root, &format!("sys/fs/cgroup/{group}/cgroup.freeze"), text);
        };
        for group in ["pod", "pod/one", "other"] {
            freeze(group, "0\n");
        }
        for (tid, group) in [(42, "/pod/one"), (43, "/other"), (44, "/")] {
            write(
                root,
                &format!("proc/{tid}/cgroup"),
                &format!("0::{group}\n"),
            );
        }
        let mut watch = QuotaWatch::new(&Machine::at(root), ClockKind::MonotonicRaw);
        [42, 43, 44].into_iter().for_each(|tid| watch.watch(tid));
        let mut frozen = || {
            let mut turn = DrainTurn::default();
            watch.read(&mut turn);
            assert_eq!(turn.quotas_read == Ticks(0), turn.frozen.is_empty());
            turn.frozen
        };
        assert!(frozen().is_empty());
        freeze("pod", "1\n");
        freeze("pod", "0\n");
        assert_eq!(frozen(), [42]);
        freeze("other", "1\n");
        assert_eq!(frozen(), [43]);
        write(root, "proc/44/cgroup", "0::/pod\n");
        assert_eq!(frozen(), [44]);
        freeze("pod", "1\n");
        assert_eq!(frozen(), [42, 44]);
        assert!(frozen().is_empty());
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
