//! Shares of threads in CPUs' time, measured before watching begins, to find the threads that belong there.

use jitterscope_model::{Comm, CpuId, EventKind, KernelEvent, PutInOrder, ThreadRef, Ticks};
use std::collections::{BTreeMap, HashMap};

/// Maximum of threads per CPU; later ones have no share.
const MOST_THREADS: usize = 4096;

#[derive(Debug)]
struct Cpu {
    since: Ticks,
    now: Option<i32>,
    threads: HashMap<i32, (Comm, Ticks)>,
}

/// Shares of CPUs, including interrupts.
#[derive(Debug)]
pub struct Shares {
    from: Ticks,
    cpus: BTreeMap<CpuId, Cpu>,
}

impl Shares {
    #[must_use]
    pub fn new(from: Ticks) -> Shares {
        Shares {
            from,
            cpus: BTreeMap::new(),
        }
    }

    /// Adds a record of a CPU. Records come in order of time.
    pub fn event(&mut self, event: &KernelEvent) {
        let at = event.time.max(self.from);
        let cpu = self.cpus.entry(event.cpu).or_insert(Cpu {
            since: self.from,
            now: None,
            threads: HashMap::new(),
        });
        // The first record shows who has had the CPU so far.
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

    /// The threads that had a CPU until `until`, without the idle thread, with their times; most time first. A name is
    /// empty if no record had it.
    #[must_use]
    pub fn largest(&self, cpu: CpuId, until: Ticks) -> Vec<(ThreadRef, Ticks)> {
        let Some(cpu) = self.cpus.get(&cpu) else {
            return Vec::new();
        };
        let under_way = |tid| {
            if cpu.now == Some(tid) {
                until.since(cpu.since)
            } else {
                Ticks(0)
            }
        };
        let mut found: Vec<(ThreadRef, Ticks)> = cpu
            .threads
            .iter()
            .filter(|(tid, _)| **tid != 0)
            .map(|(tid, (comm, ran))| {
                (
                    ThreadRef {
                        tid: *tid,
                        comm: *comm,
                    },
                    *ran + under_way(*tid),
                )
            })
            .collect();
        found.order_by_key(|(thread, ran)| (std::cmp::Reverse(*ran), thread.tid));
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

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{ExecutionContext, TaskRef};

    const CPU: CpuId = CpuId(1);

    fn on(time: u64, tid: i32, kind: EventKind) -> KernelEvent {
        KernelEvent {
            time: Ticks(time),
            cpu: CPU,
            tid,
            context: ExecutionContext::Thread,
            kind,
        }
    }

    fn switch(time: u64, prev: i32, next: i32) -> KernelEvent {
        let task = |tid: i32| TaskRef {
            tid,
            comm: Comm::new(&format!("t{tid}")),
            prio: 120,
        };
        // The record's own thread is not used: it can be either.
        on(
            time,
            9999,
            EventKind::SchedSwitch {
                prev: task(prev),
                prev_state: 1,
                next: task(next),
            },
        )
    }

    fn shares(from: u64, events: &[KernelEvent]) -> Shares {
        let mut shares = Shares::new(Ticks(from));
        events.iter().for_each(|event| shares.event(event));
        shares
    }

    fn largest(shares: &Shares, until: u64) -> Vec<(i32, String, u64)> {
        let row = |(thread, ran): (ThreadRef, Ticks)| (thread.tid, thread.comm.to_string(), ran.0);
        shares
            .largest(CPU, Ticks(until))
            .into_iter()
            .map(row)
            .collect()
    }

    #[test]
    fn shares_of_the_cpu_cover_the_whole_time() {
        let tick = |time, tid| on(time, tid, EventKind::SoftirqEntry { vec: 1 });
        let events = [
            switch(200, 7, 8),
            tick(250, 8),
            switch(400, 8, 0),
            tick(420, 0),
            switch(450, 0, 7),
        ];
        let all = shares(100, &events);
        // The idle thread has no share.
        assert_eq!(
            largest(&all, 500),
            [(8, "t8".into(), 200), (7, "t7".into(), 150)]
        );
        assert_eq!(
            largest(&all, 600),
            [(7, "t7".into(), 250), (8, "t8".into(), 200)]
        );
        // Of equals the smaller id is first.
        assert_eq!(
            largest(&all, 550)
                .iter()
                .map(|row| row.0)
                .collect::<Vec<_>>(),
            [7, 8]
        );
        assert!(all.largest(CpuId(2), Ticks(500)).is_empty());
        // Time before the beginning does not count.
        let early = shares(300, &[switch(100, 6, 7), switch(350, 7, 8)]);
        assert_eq!(
            largest(&early, 360)[..2],
            [(7, "t7".into(), 50), (8, "t8".into(), 10)]
        );
    }

    #[test]
    fn a_record_in_the_middle_of_a_switch_names_nobody() {
        let flush = |time, tid| {
            on(
                time,
                tid,
                EventKind::TlbFlush {
                    reason: 0,
                    pages: -1,
                },
            )
        };
        let events = [switch(200, 7, 8), flush(300, 66), switch(400, 8, 9)];
        assert_eq!(
            largest(&shares(100, &events), 400)[..2],
            [(8, "t8".into(), 200), (7, "t7".into(), 100)]
        );
        // A switch left no record: the thread in the next record has had the CPU.
        let events = [
            switch(200, 7, 8),
            on(300, 5, EventKind::SoftirqEntry { vec: 1 }),
        ];
        assert_eq!(
            largest(&shares(100, &events), 350)[0],
            (5, String::new(), 150)
        );
    }

    #[test]
    fn threads_beyond_the_limit_have_no_share_and_the_others_keep_theirs() {
        let last = i32::try_from(MOST_THREADS).unwrap() + 5;
        let mut all = Shares::new(Ticks(0));
        for tid in 1..last {
            all.event(&switch(u64::try_from(tid).unwrap() * 10, tid, tid + 1));
        }
        all.event(&switch(1_000_000, last, 1));
        let found = largest(&all, 1_000_100);
        assert_eq!(found.len(), MOST_THREADS);
        assert_eq!(found[0], (1, "t1".into(), 110));
        assert!(found.iter().all(|row| row.0 < last && row.2 > 0));
    }
}
