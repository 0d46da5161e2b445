//! A run as it is drawn: its stalls with their parts, in so many rows as a page can hold, and what charts
//! show of all of them.

mod curves;
mod offsets;
mod sample;

pub use curves::{Curve, CurveOf};
pub use offsets::OffsetMap;

use crate::RunSummary;
use jitterscope_model::{
    Attribution, CpuId, CulpritSums, KeyLevel, Nanos, Part, RunManifest, Stall, StallId, Subject,
};
use sample::Sample;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Stalls that are kept unless said otherwise.
pub const MOST_STALLS: usize = 100_000;
/// Culprits told apart; the rest share a row a kind.
const MOST_CULPRITS: usize = 512;
/// Ways in which parts differ, but for their lengths, that are told apart.
const MOST_SORTS: usize = 16_384;
/// Lanes told apart; what is beyond them shares the last.
const MOST_LANES: usize = 1_024;

/// Where stalls are drawn: a CPU, or a thread that was followed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// A measured CPU.
    Cpu(CpuId),
    /// A thread.
    Thread {
        /// Its id.
        tid: i32,
        /// Its name, or its role in a pipeline.
        name: String,
    },
    /// Threads beyond those that are told apart.
    Others,
}

/// One culprit, over the whole run, an idle control left out.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawnCulprit {
    /// What all its parts have in common.
    pub subject: Subject,
    /// How many threads or workers it is about: 0 for what has none.
    pub threads: u64,
    /// Stalls in which it had a part.
    pub count: u64,
    /// Its parts, summed.
    pub total: Nanos,
    /// Its largest part of a stall.
    pub max: Nanos,
}

/// What parts can have in common but for their lengths.
#[derive(Clone, Debug, PartialEq)]
pub struct PartSort {
    /// Whose parts: an index into [`Picture::culprits`].
    pub culprit: usize,
    /// One of them, without its lengths; `None` of those beyond what is told apart.
    pub part: Option<Part>,
}

/// One part of a drawn stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawnPart {
    /// Of which sort: an index into [`Picture::sorts`].
    pub sort: usize,
    /// Time in which it was the innermost thing running.
    pub net: Nanos,
    /// From its first entry to its last exit.
    pub gross: Nanos,
}

/// One stall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnStall {
    /// Its number within the run.
    pub id: StallId,
    /// Where it is drawn: an index into [`Picture::lanes`].
    pub lane: usize,
    /// Where the victim ran.
    pub cpu: CpuId,
    /// Start, since that of the measurement.
    pub start: Nanos,
    /// Length.
    pub length: Nanos,
    /// In order of first appearance; empty without attribution.
    pub parts: Vec<DrawnPart>,
}

impl DrawnStall {
    /// Its largest part.
    #[must_use]
    pub fn largest(&self) -> Option<DrawnPart> {
        self.parts
            .iter()
            .copied()
            .reduce(|a, b| if b.net > a.net { b } else { a })
    }
}

/// A run as it is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Start of the measurement, nanoseconds since the epoch.
    pub began_realtime_ns: u64,
    /// From its start to its end.
    pub duration: Nanos,
    /// The time that was measured, of all CPUs together, an idle control left out.
    pub measured: Nanos,
    /// Stalls that were read, an idle control's included.
    pub stalls_read: u64,
    /// Those that are drawn, by start. When not all are, each span of time keeps its shortest and its longest
    /// of each lane, and the longest of all are there.
    pub stalls: Vec<DrawnStall>,
    /// Where they are drawn.
    pub lanes: Vec<Lane>,
    /// By total.
    pub culprits: Vec<DrawnCulprit>,
    /// What their parts can have in common.
    pub sorts: Vec<PartSort>,
    /// Distributions, to the nines.
    pub curves: Vec<Curve>,
    /// When within a second stalls began, of all that were read.
    pub offsets: OffsetMap,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    total: Nanos,
    max: Nanos,
    /// The stall that was counted last.
    last: Option<StallId>,
    of_last: Nanos,
}

/// Takes in a run's rows as [`crate::SummaryBuilder`] does, and gives its picture.
#[derive(Debug)]
pub struct PictureBuilder<'m> {
    manifest: &'m RunManifest,
    began: jitterscope_model::Ticks,
    by_thread: bool,
    read: u64,
    sample: Sample,
    lanes: Vec<Lane>,
    lane_of: HashMap<i64, usize>,
    sums: CulpritSums<(), Sum>,
    sorts: Vec<PartSort>,
    sort_of: HashMap<SortKey, usize>,
    rest_of: HashMap<usize, usize>,
    offsets: OffsetMap,
    /// Stalls of the idle control whose attribution is still to come.
    of_control: HashSet<StallId>,
    /// Lengths of the stalls, to three digits, where the manifest has no distribution.
    lengths: HashMap<u64, u64>,
}

type SortKey = (
    Arc<jitterscope_model::Culprit>,
    Option<jitterscope_model::Phase>,
    Option<CpuId>,
    jitterscope_model::Placement,
    jitterscope_model::Confidence,
    jitterscope_model::Evidence,
    Option<u32>,
);

impl<'m> PictureBuilder<'m> {
    /// Begins the picture of a run that has so many stalls; at most `most` of them are kept.
    #[must_use]
    pub fn new(manifest: &'m RunManifest, stalls: u64, most: usize) -> PictureBuilder<'m> {
        let duration = manifest.duration();
        let by_thread = manifest.results.is_empty();
        let lanes = if by_thread {
            manifest.threads.len()
        } else {
            manifest.results.len()
        };
        let mut builder = PictureBuilder {
            manifest,
            began: manifest
                .span()
                .map_or(manifest.clock_start.ticks, |(first, _)| first),
            by_thread,
            read: 0,
            sample: Sample::new(stalls, most, lanes.clamp(1, MOST_LANES), duration),
            lanes: Vec::new(),
            lane_of: HashMap::new(),
            sums: CulpritSums::new(KeyLevel::Program, MOST_CULPRITS),
            sorts: Vec::new(),
            sort_of: HashMap::new(),
            rest_of: HashMap::new(),
            offsets: OffsetMap::new(duration),
            of_control: HashSet::new(),
            lengths: HashMap::new(),
        };
        // In order of the CPUs, and those too that nothing stalled.
        if !by_thread {
            for result in &manifest.results {
                builder.lane(i64::from(result.cpu.0), || Lane::Cpu(result.cpu));
            }
        }
        builder
    }

    fn lane(&mut self, key: i64, lane: impl FnOnce() -> Lane) -> usize {
        if let Some(at) = self.lane_of.get(&key) {
            return *at;
        }
        if self.lanes.len() > MOST_LANES {
            return MOST_LANES;
        }
        let lane = if self.lanes.len() == MOST_LANES {
            Lane::Others
        } else {
            lane()
        };
        self.lanes.push(lane);
        self.lane_of.insert(key, self.lanes.len() - 1);
        self.lanes.len() - 1
    }

    fn lane_of(&mut self, stall: &Stall) -> usize {
        if !self.by_thread {
            return self.lane(i64::from(stall.cpu.0), || Lane::Cpu(stall.cpu));
        }
        let tid = stall.victim.tid;
        let account = self
            .manifest
            .threads
            .iter()
            .find(|thread| thread.tid == tid);
        let called = account.map(|account| account.role.as_ref().unwrap_or(&account.comm).clone());
        self.lane(i64::from(tid), || Lane::Thread {
            tid,
            // By the account's name: a command that was started was called otherwise before it was executed.
            name: called
                .filter(|name| !name.is_empty())
                .unwrap_or_else(|| stall.victim.comm.to_string()),
        })
    }

    /// One stall.
    pub fn stall(&mut self, stall: &Stall) {
        let rate = self.manifest.rate;
        let drawn = DrawnStall {
            id: stall.id,
            lane: self.lane_of(stall),
            cpu: stall.cpu,
            start: rate.nanos(stall.start.since(self.began)),
            length: rate.nanos(stall.length()),
            parts: Vec::new(),
        };
        self.read += 1;
        if self.by_thread {
            *self
                .lengths
                .entry(three_digits(drawn.length.0))
                .or_default() += 1;
        }
        if self.manifest.idle_control() != Some(stall.cpu) {
            self.offsets.add(drawn.start);
        } else if self.manifest.attributed {
            self.of_control.insert(stall.id);
        }
        self.sample.add(drawn);
    }

    /// The attribution of a stall taken in before.
    pub fn attribution(&mut self, attribution: &Attribution) {
        let counted = !self.of_control.remove(&attribution.stall);
        let kept = self.sample.is_kept(attribution.stall);
        let mut parts = Vec::new();
        for part in &attribution.parts {
            let culprit = self.sums.position_of((), &part.culprit);
            if counted {
                let sum = self.sums.at(culprit);
                if sum.last != Some(attribution.stall) {
                    sum.last = Some(attribution.stall);
                    sum.of_last = Nanos::ZERO;
                    sum.count += 1;
                }
                sum.of_last += part.net;
                sum.total += part.net;
                sum.max = sum.max.max(sum.of_last);
            }
            if kept {
                parts.push(DrawnPart {
                    sort: self.sort(culprit, part),
                    net: part.net,
                    gross: part.gross,
                });
            }
        }
        if kept {
            self.sample.parts(attribution.stall, parts);
        }
    }

    fn sort(&mut self, culprit: usize, part: &Part) -> usize {
        let key = (
            part.culprit.clone(),
            part.phase.clone(),
            part.moved_from,
            part.placement,
            part.confidence,
            part.evidence.clone(),
            part.others_stalled,
        );
        if let Some(at) = self.sort_of.get(&key) {
            return *at;
        }
        if self.sorts.len() < MOST_SORTS {
            let part = Part {
                net: Nanos::ZERO,
                gross: Nanos::ZERO,
                ..part.clone()
            };
            self.sorts.push(PartSort {
                culprit,
                part: Some(part),
            });
            self.sort_of.insert(key, self.sorts.len() - 1);
            return self.sorts.len() - 1;
        }
        let (sorts, rest_of) = (&mut self.sorts, &mut self.rest_of);
        *rest_of.entry(culprit).or_insert_with(|| {
            sorts.push(PartSort {
                culprit,
                part: None,
            });
            sorts.len() - 1
        })
    }

    /// The picture.
    #[must_use]
    pub fn finish(mut self) -> Picture {
        let mut rows: Vec<(usize, DrawnCulprit)> =
            std::mem::replace(&mut self.sums, CulpritSums::new(KeyLevel::Program, 0))
                .into_rows()
                .into_iter()
                .map(|row| DrawnCulprit {
                    threads: row.threads(),
                    subject: row.subject,
                    count: row.value.count,
                    total: row.value.total,
                    max: row.value.max,
                })
                .enumerate()
                .collect();
        rows.sort_by(|(a_at, a), (b_at, b)| b.total.cmp(&a.total).then(a_at.cmp(b_at)));
        let mut now = vec![0; rows.len()];
        for (to, (from, _)) in rows.iter().enumerate() {
            now[*from] = to;
        }
        for sort in &mut self.sorts {
            sort.culprit = now[sort.culprit];
        }
        Picture {
            began_realtime_ns: self.manifest.started_realtime_ns(),
            duration: self.manifest.duration(),
            measured: crate::compare::measured(self.manifest),
            stalls_read: self.read,
            stalls: self.sample.finish(),
            lanes: self.lanes,
            culprits: rows.into_iter().map(|(_, row)| row).collect(),
            sorts: self.sorts,
            curves: curves::of(self.manifest, self.lengths),
            offsets: self.offsets,
        }
    }
}

/// `summary`'s row of a culprit: who triggered it, and its rate.
#[must_use]
pub fn summary_row<'s>(
    summary: &'s RunSummary,
    subject: &Subject,
) -> Option<&'s crate::CulpritRow> {
    let attribution = summary.attribution.as_ref()?;
    attribution
        .culprits
        .iter()
        .chain(&attribution.unexplained.classes)
        .find(|row| row.subject == *subject)
}

/// Rounded up to three significant digits, as the histograms of the probes are.
fn three_digits(value: u64) -> u64 {
    let mut step = 1u64;
    while value / step >= 1000 {
        step = step.saturating_mul(10);
    }
    value.div_ceil(step).saturating_mul(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_keep_three_digits_and_never_shrink() {
        assert_eq!(
            [0, 7, 999, 1000, 1001, 123_456].map(three_digits),
            [0, 7, 999, 1000, 1010, 124_000]
        );
        assert!(three_digits(u64::MAX) >= 18_400_000_000_000_000_000);
    }
}
