//! The sums of one thread's time.

use super::{Episode, EpisodeKind};
use jitterscope_model::{
    CpuId, CpuShare, CulpritSums, KeyLevel, RanInstead, Subject, ThreadAccount, ThreadRef, TickRate, Ticks,
};
use std::collections::BTreeMap;

/// Culprits told apart a thread; the rest share a row a kind.
const MOST_CULPRITS: usize = 2048;

#[derive(Clone, Copy, Debug, Default)]
struct Turns {
    count: u64,
    min: Ticks,
    max: Ticks,
    sum: Ticks,
}

impl Turns {
    fn add(&mut self, length: Ticks) {
        self.min = if self.count == 0 { length } else { self.min.min(length) };
        self.max = self.max.max(length);
        self.sum = self.sum + length;
        self.count += 1;
    }
}

/// What counts in ticks until the end.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) running: Ticks,
    pub(super) interrupted: Ticks,
    pub(super) waiting: Ticks,
    pub(super) preempted: Ticks,
    pub(super) blocked: Ticks,
    pub(super) unknown: Ticks,
    pub(super) runs: u64,
    pub(super) voluntary: u64,
    pub(super) involuntary: u64,
    pub(super) migrations: u64,
    pub(super) page_faults: u64,
    longest_wait: Ticks,
    cpus: BTreeMap<CpuId, (u64, Ticks)>,
    instead: CulpritSums<(), Turns>,
}

impl Default for Account {
    fn default() -> Account {
        Account {
            running: Ticks(0),
            interrupted: Ticks(0),
            waiting: Ticks(0),
            preempted: Ticks(0),
            blocked: Ticks(0),
            unknown: Ticks(0),
            runs: 0,
            voluntary: 0,
            involuntary: 0,
            migrations: 0,
            page_faults: 0,
            longest_wait: Ticks(0),
            cpus: BTreeMap::new(),
            instead: CulpritSums::new(KeyLevel::Program, MOST_CULPRITS),
        }
    }
}

impl Account {
    /// It was put on a CPU.
    pub(super) fn run_begins(&mut self, cpu: CpuId) {
        self.runs += 1;
        self.cpus.entry(cpu).or_default().0 += 1;
    }

    /// It ran there for so long.
    pub(super) fn ran(&mut self, cpu: CpuId, length: Ticks) {
        if length == Ticks(0) {
            return;
        }
        self.running = self.running + length;
        let share = self.cpus.entry(cpu).or_default();
        share.1 = share.1 + length;
    }

    /// Something ran in its stead. Waiting itself is counted by state; this is about who.
    pub(super) fn episode(&mut self, episode: &Episode) {
        let length = episode.length();
        match episode.kind {
            EpisodeKind::Interrupted => self.interrupted = self.interrupted + length,
            EpisodeKind::Preempted | EpisodeKind::WaitAfterWakeUp => {
                self.longest_wait = self.longest_wait.max(length);
            }
        }
        let mut turns: BTreeMap<usize, (&Subject, Ticks)> = BTreeMap::new();
        for slice in &episode.slices {
            let turn = turns.entry(slice.turn).or_insert((&slice.culprit.subject, Ticks(0)));
            turn.1 = turn.1 + slice.end.since(slice.start);
        }
        for (subject, length) in turns.into_values() {
            self.instead.of((), subject).add(length);
        }
    }

    /// In nanoseconds, for the report.
    pub(super) fn sum_up(&self, thread: ThreadRef, role: Option<&str>, rate: TickRate) -> ThreadAccount {
        let ns = |ticks: Ticks| rate.nanos(ticks);
        let mut ran_instead: Vec<RanInstead> = self
            .instead
            .rows()
            .map(|row| RanInstead {
                subject: row.subject.clone(),
                threads: row.threads(),
                count: row.value.count,
                min_ns: ns(row.value.min),
                max_ns: ns(row.value.max),
                total_ns: ns(row.value.sum),
            })
            .collect();
        ran_instead.sort_by(|a, b| (b.total_ns, &a.subject).cmp(&(a.total_ns, &b.subject)));
        let share = |(cpu, (runs, time)): (&CpuId, &(u64, Ticks))| CpuShare {
            cpu: *cpu,
            runs: *runs,
            running_ns: ns(*time),
        };
        ThreadAccount {
            tid: thread.tid,
            comm: thread.comm.to_string(),
            role: role.map(str::to_owned),
            running_ns: ns(self.running),
            // Running that later records contradicted is unknown, its interrupts with it.
            interrupted_ns: ns(self.interrupted.min(self.running)),
            waiting_ns: ns(self.waiting),
            preempted_ns: ns(self.preempted),
            blocked_ns: ns(self.blocked),
            unknown_ns: ns(self.unknown),
            runs: self.runs,
            voluntary_switches: self.voluntary,
            involuntary_switches: self.involuntary,
            migrations: self.migrations,
            page_faults: self.page_faults,
            longest_wait_ns: ns(self.longest_wait),
            cpus: self.cpus.iter().map(share).collect(),
            ran_instead,
            ..ThreadAccount::default()
        }
    }
}
