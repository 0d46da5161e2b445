//! The sums of one thread's time.

use super::sleeps::{Reasons, Sleeps};
use super::{Episode, EpisodeKind};
use crate::instead::Instead;
use crate::windows::{CulpritCache, SharedCulprit};
use jitterscope_model::{CpuId, CpuShare, ThreadAccount, ThreadRef, TickRate, Ticks};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Sums, in ticks until the report.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) running: Ticks,
    pub(super) interrupted: Ticks,
    pub(super) waiting: Ticks,
    pub(super) preempted: Ticks,
    pub(super) stopped: Ticks,
    pub(super) blocked: Ticks,
    pub(super) unknown: Ticks,
    pub(super) runs: u64,
    pub(super) voluntary: u64,
    pub(super) involuntary: u64,
    pub(super) migrations: u64,
    pub(super) page_faults: u64,
    pub(super) sleeps: Sleeps,
    longest_wait: Ticks,
    cpus: BTreeMap<CpuId, (u64, Ticks)>,
    instead: Instead,
}

impl Account {
    /// The thread got a CPU.
    pub(super) fn run_begins(&mut self, cpu: CpuId) {
        self.runs += 1;
        self.cpus.entry(cpu).or_default().0 += 1;
    }

    /// The thread ran there for this long.
    pub(super) fn ran(&mut self, cpu: CpuId, length: Ticks) {
        if length == Ticks(0) {
            return;
        }
        self.running = self.running + length;
        let share = self.cpus.entry(cpu).or_default();
        share.1 = share.1 + length;
    }

    /// Something ran instead. The waiting time itself is counted by state; this sums the culprits.
    pub(super) fn episode(&mut self, episode: &Episode, cache: &mut CulpritCache) {
        let length = episode.length();
        match episode.kind {
            EpisodeKind::Interrupted => self.interrupted = self.interrupted + length,
            EpisodeKind::Preempted | EpisodeKind::WaitAfterWakeUp => {
                self.longest_wait = self.longest_wait.max(length);
            }
            EpisodeKind::Stopped => {}
        }
        // The index of each turn in `turns`.
        let mut places: FxHashMap<usize, usize> = FxHashMap::default();
        let mut turns: Vec<(&SharedCulprit, Ticks)> = Vec::with_capacity(episode.slices.len());
        for slice in &episode.slices {
            let place = *places.entry(slice.turn).or_insert(turns.len());
            if place == turns.len() {
                turns.push((&slice.culprit, Ticks(0)));
            }
            turns[place].1 = turns[place].1 + slice.end.since(slice.start);
        }
        for (culprit, length) in turns {
            self.instead
                .add(&culprit.subject, cache.number(culprit), length);
        }
    }

    /// The account in nanoseconds, for the report.
    pub(super) fn sum_up(
        &self,
        thread: ThreadRef,
        role: Option<&str>,
        reasons: &Reasons,
        rate: TickRate,
    ) -> ThreadAccount {
        let ns = |ticks: Ticks| rate.nanos(ticks);
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
            // Running time that later records contradicted is unknown, and so are its interruptions.
            interrupted_ns: ns(self.interrupted.min(self.running)),
            waiting_ns: ns(self.waiting),
            preempted_ns: ns(self.preempted),
            stopped_ns: ns(self.stopped),
            blocked_ns: ns(self.blocked),
            unknown_ns: ns(self.unknown),
            runs: self.runs,
            voluntary_switches: self.voluntary,
            involuntary_switches: self.involuntary,
            migrations: self.migrations,
            page_faults: self.page_faults,
            longest_wait_ns: ns(self.longest_wait),
            cpus: self.cpus.iter().map(share).collect(),
            ran_instead: self.instead.rows(rate),
            blocked_on: self.sleeps.rows(reasons, rate),
            ..ThreadAccount::default()
        }
    }
}
