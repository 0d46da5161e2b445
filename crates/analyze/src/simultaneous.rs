//! Stalls that begin together on several CPUs.
//!
//! A system management interrupt stops all cores of a package within a fraction of a microsecond, and a paused virtual
//! machine stops all its CPUs. The clocks of different CPUs agree to well below that. A window of 2 us covers both, and
//! is short against the time between stalls on most machines; the summary also has the number of groups expected by
//! chance.

use crate::rows_of::RowsOf;
use crate::summary::{Simultaneous, SimultaneousGroup};
use jitterscope_model::{
    CpuId, CpuSet, Nanos, ProbeResult, PutInOrder, RunManifest, Stall, StallId, Ticks,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const WINDOW: Nanos = Nanos(2000);
/// The size of the reorder buffer. Stalls arrive in order of detection, by CPU within a fraction of a second.
const REORDER: usize = 1 << 14;
/// The number of listed groups.
const LISTED: usize = 5;

/// In a group, a stall shorter than the longest by more than this factor is coincidence, or negligible.
const COMPARABLE: u64 = 10;

/// The start of a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Start {
    pub(crate) at: Ticks,
    pub(crate) cpu: CpuId,
    pub(crate) length: Ticks,
    pub(crate) id: StallId,
}

/// Groups stalls by their start.
#[derive(Debug)]
pub(crate) struct Grouper {
    window: Ticks,
    measured: usize,
    waiting: BinaryHeap<Reverse<Start>>,
    group: Vec<Start>,
    found: Simultaneous,
    worst: Vec<(Ticks, Ticks, CpuSet)>,
    /// Groups of comparable stalls, sorted by the longest; in each the longest first.
    comparable: Vec<Vec<Start>>,
    limit: usize,
}

impl Grouper {
    /// Keeps the members of `limit` groups.
    pub(crate) fn new(run: RowsOf, limit: usize) -> Grouper {
        Grouper {
            window: run.rate.ticks(WINDOW),
            measured: run.measured(),
            waiting: BinaryHeap::new(),
            group: Vec::new(),
            found: Simultaneous {
                window_ns: WINDOW,
                ..Simultaneous::default()
            },
            worst: Vec::new(),
            comparable: Vec::new(),
            limit,
        }
    }

    pub(crate) fn stall(&mut self, stall: &Stall) {
        if self.measured < 2 {
            return;
        }
        self.waiting.push(Reverse(Start {
            at: stall.start,
            cpu: stall.cpu,
            length: stall.length(),
            id: stall.id,
        }));
        if self.waiting.len() > REORDER {
            self.next();
        }
    }

    fn next(&mut self) {
        let Some(Reverse(start)) = self.waiting.pop() else {
            return;
        };
        let first = self.group.first().map_or(start.at, |first| first.at);
        // A stall that arrives too late to be sorted starts a group of its own.
        if start.at < first || start.at.since(first) > self.window {
            self.close();
        }
        self.group.push(start);
    }

    fn close(&mut self) {
        let group = std::mem::take(&mut self.group);
        let cpus: CpuSet = group.iter().map(|start| start.cpu).collect();
        let (Some(first), true) = (group.first(), cpus.len() > 1) else {
            return;
        };
        self.found.groups += 1;
        self.found.stalls += group.len() as u64;
        self.found.on_all_cpus += u64::from(cpus.len() == self.measured);
        let longest = group
            .iter()
            .map(|start| start.length)
            .max()
            .unwrap_or_default();
        let at = self.worst.partition_point(|(other, ..)| *other >= longest);
        if at < LISTED {
            self.worst.insert(at, (longest, first.at, cpus));
            self.worst.truncate(LISTED);
        }
        self.keep(group, longest);
    }

    /// Keeps the group's stalls that are comparable to its longest, one for each CPU.
    fn keep(&mut self, mut group: Vec<Start>, longest: Ticks) {
        let at = self
            .comparable
            .partition_point(|other| other[0].length >= longest);
        if at >= self.limit {
            return;
        }
        group.retain(|start| start.length.0 >= longest.0 / COMPARABLE);
        group.order_by_key(|start| (Reverse(start.length), start.id));
        let mut seen = CpuSet::new();
        group.retain(|start| seen.insert(start.cpu));
        if group.len() > 1 {
            self.comparable.insert(at, group);
            self.comparable.truncate(self.limit);
        }
    }

    /// The result, `None` if fewer than two CPUs were measured; and the groups with the longest stalls, in each the
    /// longest first.
    pub(crate) fn finish(
        mut self,
        manifest: &RunManifest,
    ) -> (Option<Simultaneous>, Vec<Vec<Start>>) {
        if self.measured < 2 {
            return (None, Vec::new());
        }
        while !self.waiting.is_empty() {
            self.next();
        }
        self.close();
        self.found.groups_by_chance = by_chance(manifest, self.window);
        self.found.worst = self
            .worst
            .into_iter()
            .map(|(longest, start, cpus)| SimultaneousGroup {
                start_realtime_ns: manifest.realtime_ns(start),
                cpus,
                longest_ns: manifest.rate.nanos(longest),
            })
            .collect();
        (Some(self.found), self.comparable)
    }
}

/// All CPUs except an idle control.
fn measured(manifest: &RunManifest) -> impl Iterator<Item = &ProbeResult> {
    let control = manifest.idle_control();
    manifest
        .results
        .iter()
        .filter(move |result| Some(result.cpu) != control)
}

/// The expected number of groups if the CPUs stall independently, each as a Poisson process: a CPU's stalls that
/// another CPU's stall follows within the window.
fn by_chance(manifest: &RunManifest, window: Ticks) -> f64 {
    let rates: Vec<(f64, f64)> = measured(manifest)
        .map(|r| {
            (
                r.stalls as f64,
                r.stalls as f64 / (r.end.since(r.start).0.max(1)) as f64,
            )
        })
        .collect();
    let all: f64 = rates.iter().map(|(_, rate)| rate).sum();
    rates
        .iter()
        .map(|(stalls, rate)| stalls * -(-(all - rate) * window.0 as f64).exp_m1())
        .sum()
}
