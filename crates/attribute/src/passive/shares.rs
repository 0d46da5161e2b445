//! Who has a CPU for how long: a look before it is watched, to find what belongs there.

use jitterscope_model::{Comm, CpuId, EventKind, KernelEvent, ThreadRef, Ticks};
use std::collections::{BTreeMap, HashMap};

/// Threads told apart a CPU; those that come later have no share.
const MOST_THREADS: usize = 4096;

#[derive(Debug)]
struct Cpu {
    since: Ticks,
    now: Option<i32>,
    threads: HashMap<i32, (Comm, Ticks)>,
}

/// Shares of CPUs, interrupts included.
#[derive(Debug)]
pub struct Shares {
    from: Ticks,
    cpus: BTreeMap<CpuId, Cpu>,
}

impl Shares {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(from: Ticks) -> Shares {
        Shares { from, cpus: BTreeMap::new() }
    }

    /// A record of a CPU, in order of time.
    pub fn event(&mut self, event: &KernelEvent) {
        let at = event.time.max(self.from);
        let cpu = self.cpus.entry(event.cpu).or_insert(Cpu {
            since: self.from,
            now: None,
            threads: HashMap::new(),
        });
        // The first record tells who has had the CPU all along.
        let had = match &event.kind {
            EventKind::SchedSwitch { prev, .. } => prev.tid,
            // It may be written in the middle of a switch.
            EventKind::TlbFlush { .. } => return,
            _ => event.tid,
        };
        cpu.ran(had, at);
        match &event.kind {
            EventKind::SchedSwitch { prev, next, .. } => {
                cpu.name(prev.tid, prev.comm);
                cpu.now = Some(next.tid);
                cpu.name(next.tid, next.comm);
            }
            _ => cpu.now = Some(had),
        }
    }

    /// The threads that had a CPU until `until`, but for the idle thread: how long, most time first. A name is
    /// empty where no record told it.
    #[must_use]
    pub fn largest(&self, cpu: CpuId, until: Ticks) -> Vec<(ThreadRef, Ticks)> {
        let Some(cpu) = self.cpus.get(&cpu) else { return Vec::new() };
        let under_way = |tid| if cpu.now == Some(tid) { until.since(cpu.since) } else { Ticks(0) };
        let mut found: Vec<(ThreadRef, Ticks)> = cpu
            .threads
            .iter()
            .filter(|(tid, _)| **tid != 0)
            .map(|(tid, (comm, ran))| (ThreadRef { tid: *tid, comm: *comm }, *ran + under_way(*tid)))
            .collect();
        found.sort_by_key(|(thread, ran)| (std::cmp::Reverse(*ran), thread.tid));
        found
    }
}

impl Cpu {
    fn ran(&mut self, tid: i32, until: Ticks) {
        let length = until.since(self.since);
        self.since = self.since.max(until);
        if let Some(entry) = self.entry(tid) {
            entry.1 = entry.1 + length;
        }
    }

    fn name(&mut self, tid: i32, comm: Comm) {
        if let Some(entry) = self.entry(tid) {
            entry.0 = comm;
        }
    }

    fn entry(&mut self, tid: i32) -> Option<&mut (Comm, Ticks)> {
        if self.threads.len() >= MOST_THREADS && !self.threads.contains_key(&tid) {
            return None;
        }
        Some(self.threads.entry(tid).or_default())
    }
}
