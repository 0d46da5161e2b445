//! Names of threads, from events and, on demand, from `/proc`.

use jitterscope_model::{Comm, EventKind, KernelEvent, TaskRef, Ticks};
use jitterscope_platform::Machine;
use rustc_hash::FxHashMap;

const CAPACITY: usize = 8_192;

/// Thread id to name, with a size limit: a full table drops names without recent use.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    /// Two generations: when the young one reaches half the capacity, it becomes the old one. Names of the old one that
    /// are not used before the next change are dropped.
    young: FxHashMap<i32, Known>,
    old: FxHashMap<i32, Known>,
    /// The last name that was added, a shortcut: the thread that leaves a CPU is the one that came last.
    last: (i32, Comm),
    /// The time of the newest record.
    now: Ticks,
}

/// A thread's name, and since when the thread has it. Records of several CPUs arrive buffer by buffer: a record with the
/// old name may arrive after the record of the rename.
#[derive(Clone, Copy, Debug)]
struct Known {
    comm: Comm,
    since: Ticks,
}

impl Tasks {
    /// Learns the name that a thread has now. False when that changes nothing.
    pub fn insert(&mut self, tid: i32, comm: Comm) -> bool {
        self.note(tid, comm, self.now, None)
    }

    /// Learns the name that a thread had at a time, and since when it has that name, if known. The latest name wins,
    /// because threads can be renamed. False if that changes nothing.
    fn note(&mut self, tid: i32, comm: Comm, at: Ticks, since: Option<Ticks>) -> bool {
        // Thread 0 is every CPU's idle task, and an empty name says nothing.
        if tid <= 0 || comm.is_empty() || self.last == (tid, comm) {
            return false;
        }
        let known = self.young.get(&tid).or_else(|| self.old.get(&tid));
        let known_since = known.map_or(Ticks(0), |known| known.since);
        if known_since > at {
            return false;
        }
        self.last = (tid, comm);
        let is_young = self.young.get(&tid);
        if is_young.is_some_and(|known| known.comm == comm) {
            return false;
        }
        if self.young.len() >= CAPACITY / 2 && is_young.is_none() {
            self.old = std::mem::take(&mut self.young);
        }
        let since = since.unwrap_or(known_since);
        self.young.insert(tid, Known { comm, since });
        true
    }

    fn task(&mut self, task: &TaskRef, at: Ticks) {
        self.note(task.tid, task.comm, at, None);
    }

    /// Adds every name in an event.
    pub fn learn(&mut self, event: &KernelEvent) {
        let at = event.time;
        self.now = self.now.max(at);
        match &event.kind {
            EventKind::SchedSwitch { prev, next, .. } => {
                self.task(prev, at);
                self.task(next, at);
            }
            EventKind::SchedWaking { task, .. } | EventKind::SchedMigrate { task, .. } => {
                self.task(task, at)
            }
            EventKind::TaskRename { tid, comm, .. } => {
                self.note(*tid, *comm, at, Some(at));
            }
            _ => {}
        }
    }

    /// A thread with this id begins at this time: an older name belongs to an earlier thread. A rename of the new thread
    /// may have arrived before the record of its beginning.
    pub fn begin(&mut self, tid: i32, at: Ticks) {
        for names in [&mut self.young, &mut self.old] {
            if names.get(&tid).is_some_and(|known| known.since <= at) {
                names.remove(&tid);
            }
        }
        self.last = Default::default();
    }

    /// The name, if known.
    #[must_use]
    pub fn name(&self, tid: i32) -> Option<Comm> {
        let known = self.young.get(&tid).or_else(|| self.old.get(&tid));
        known.map(|known| known.comm)
    }

    /// The name; if unknown, the content of `/proc/TID/comm`, if the thread still lives.
    pub fn name_or_read(&mut self, machine: &Machine, tid: i32) -> Option<Comm> {
        if tid <= 0 {
            return None;
        }
        let name = match self.name(tid) {
            Some(name) => name,
            None => Comm::new(
                machine
                    .read(format!("/proc/{tid}/comm"))
                    .ok()?
                    .trim_end_matches('\n'),
            ),
        };
        self.insert(tid, name);
        Some(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (i32, Comm)> + '_ {
        let old = self
            .old
            .iter()
            .filter(|(tid, _)| !self.young.contains_key(tid));
        self.young
            .iter()
            .chain(old)
            .map(|(tid, known)| (*tid, known.comm))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{CpuId, ExecutionContext};

    #[test]
    fn names_stay_bounded_and_the_used_survive() {
        let mut tasks = Tasks::default();
        tasks.insert(1, Comm::new("init"));
        for tid in 2..200_000 {
            tasks.insert(tid, Comm::new("x"));
            if tid % 1000 == 0 {
                tasks.name_or_read(&Machine::at("/nonexistent".as_ref()), 1);
            }
        }
        assert!(tasks.iter().count() <= CAPACITY);
        assert_eq!(tasks.name(1), Some(Comm::new("init")));
        assert_eq!(tasks.name(0), None);
    }

    #[test]
    fn a_record_from_before_a_rename_does_not_bring_the_old_name_back() {
        let record = |time, kind| KernelEvent {
            time: Ticks(time),
            cpu: CpuId(0),
            tid: 1,
            context: ExecutionContext::Thread,
            kind,
        };
        let waking = |time, name| {
            let task = TaskRef {
                tid: 7,
                comm: Comm::new(name),
                prio: 120,
            };
            let target = CpuId(1);
            record(time, EventKind::SchedWaking { task, target })
        };
        let (old, comm) = (Comm::new("sh"), Comm::new("kill"));
        let rename = record(20, EventKind::TaskRename { tid: 7, old, comm });
        let mut tasks = Tasks::default();
        for event in [&waking(5, "sh"), &rename, &waking(10, "sh")] {
            tasks.learn(event);
        }
        assert_eq!(tasks.name(7), Some(comm));
        // The record of the thread's beginning may come last.
        tasks.begin(7, Ticks(1));
        assert_eq!(tasks.name(7), Some(comm));
        // Every record from before the rename is refused, a later one counts.
        tasks.insert(7, Comm::new("read"));
        tasks.learn(&waking(19, "sh"));
        assert_eq!(tasks.name(7), Some(Comm::new("read")));
        tasks.learn(&waking(30, "later"));
        assert_eq!(tasks.name(7), Some(Comm::new("later")));
    }

    #[test]
    fn a_thread_unknown_to_events_is_asked_of_proc() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/42")).unwrap();
        std::fs::write(dir.path().join("proc/42/comm"), "worker\n").unwrap();
        let machine = Machine::at(dir.path());
        let mut tasks = Tasks::default();
        assert_eq!(tasks.name_or_read(&machine, 42), Some(Comm::new("worker")));
        assert_eq!(tasks.name_or_read(&machine, 43), None);
        assert_eq!(
            tasks.iter().collect::<Vec<_>>(),
            [(42, Comm::new("worker"))]
        );
    }
}
