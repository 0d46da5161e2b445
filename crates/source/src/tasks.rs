//! Names of threads, learnt from events and asked of `/proc` on demand.

use jitterscope_model::{Comm, EventKind, KernelEvent, TaskRef};
use jitterscope_platform::Machine;
use rustc_hash::FxHashMap;

/// How many names are kept at most.
const CAPACITY: usize = 8_192;

/// Thread id to name, bounded: when it is full, names not seen or asked for of late go.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    /// Two generations: when the young one holds half the capacity it becomes the old one, whose
    /// names are forgotten unless they are used.
    young: FxHashMap<i32, Comm>,
    old: FxHashMap<i32, Comm>,
    /// What was learnt last, which is among the young: who leaves a CPU is who came to it last.
    last: (i32, Comm),
}

impl Tasks {
    /// Learns a name; the latest wins, since threads rename themselves. False when that changes nothing.
    pub fn insert(&mut self, tid: i32, comm: Comm) -> bool {
        // Thread 0 is every CPU's idle task, and an empty name says nothing.
        if tid <= 0 || comm.is_empty() {
            return false;
        }
        if self.last == (tid, comm) {
            return false;
        }
        self.last = (tid, comm);
        if self.young.get(&tid) == Some(&comm) {
            return false;
        }
        if self.young.len() >= CAPACITY / 2 && !self.young.contains_key(&tid) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(tid, comm);
        true
    }

    fn task(&mut self, task: &TaskRef) {
        self.insert(task.tid, task.comm);
    }

    /// Learns every name that an event tells.
    pub fn learn(&mut self, event: &KernelEvent) {
        match &event.kind {
            EventKind::SchedSwitch { prev, next, .. } => {
                self.task(prev);
                self.task(next);
            }
            EventKind::SchedWaking { task, .. } | EventKind::SchedMigrate { task, .. } => {
                self.task(task)
            }
            _ => {}
        }
    }

    /// Whoever had this id is gone: it begins again.
    pub fn forget(&mut self, tid: i32) {
        self.young.remove(&tid);
        self.old.remove(&tid);
        self.last = Default::default();
    }

    /// The name, if it is known.
    #[must_use]
    pub fn name(&self, tid: i32) -> Option<Comm> {
        self.young.get(&tid).or_else(|| self.old.get(&tid)).copied()
    }

    /// The name; when it is not known, as `/proc/TID/comm` gives it, if the thread still lives.
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

    /// All names.
    pub fn iter(&self) -> impl Iterator<Item = (i32, Comm)> + '_ {
        let old = self
            .old
            .iter()
            .filter(|(tid, _)| !self.young.contains_key(tid));
        self.young
            .iter()
            .chain(old)
            .map(|(tid, comm)| (*tid, *comm))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
