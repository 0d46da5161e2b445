//! The drawable form of a run: its stalls and parts, limited to what a page can hold, and the data of the charts.

mod curves;
mod offsets;
mod sample;

pub use curves::{Curve, CurveOf};
pub use offsets::OffsetMap;

use crate::RunSummary;
use jitterscope_model::{
    Attribution, CpuId, CulpritSums, KeyLevel, Nanos, Part, PutInOrder, RunManifest, Stall,
    StallId, Subject,
};
use sample::Sample;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The default number of kept stalls.
pub const MOST_STALLS: usize = 100_000;
/// The number of separate culprits; the rest share a row for each kind.
const MOST_CULPRITS: usize = 512;
/// The number of separate combinations of part properties other than lengths.
const MOST_SORTS: usize = 16_384;
/// The number of separate lanes; further ones share the last.
const MOST_LANES: usize = 1_024;

/// The lane of a stall: a CPU, or a followed thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// A measured CPU.
    Cpu(CpuId),
    Thread {
        tid: i32,
        /// Its name, or its role in a pipeline.
        name: String,
    },
    /// Threads beyond the limit.
    Others,
}

/// One culprit over the whole run, without an idle control.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawnCulprit {
    /// The common properties of its parts.
    pub subject: Subject,
    /// The number of its threads or workers; 0 if it has none.
    pub threads: u64,
    /// The number of stalls in which it had a part.
    pub count: u64,
    pub total: Nanos,
    /// Its largest part of a stall.
    pub max: Nanos,
}

/// The common properties of parts, other than lengths.
#[derive(Clone, Debug, PartialEq)]
pub struct PartSort {
    /// The culprit: an index into [`Picture::culprits`].
    pub culprit: usize,
    /// One of these parts, without its lengths and turns; `None` for parts beyond the limit.
    pub part: Option<Part>,
}

/// One part of a drawn stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawnPart {
    /// An index into [`Picture::sorts`].
    pub sort: usize,
    /// The time in which it was the innermost frame.
    pub net: Nanos,
    /// From its first entry to its last exit.
    pub gross: Nanos,
    /// The number of stretches of time that it sums.
    pub turns: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnStall {
    /// Its number within the run.
    pub id: StallId,
    /// An index into [`Picture::lanes`].
    pub lane: usize,
    /// The victim's CPU.
    pub cpu: CpuId,
    /// Its start, since the start of the measurement.
    pub start: Nanos,
    pub length: Nanos,
    /// In order of first appearance; empty without attribution.
    pub parts: Vec<DrawnPart>,
}

impl DrawnStall {
    #[must_use]
    pub fn largest(&self) -> Option<DrawnPart> {
        self.parts
            .iter()
            .copied()
            .reduce(|a, b| if b.net > a.net { b } else { a })
    }
}

/// The drawable form of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Start of the measurement, nanoseconds since the epoch.
    pub began_realtime_ns: u64,
    /// From its start to its end.
    pub duration: Nanos,
    /// The measured time of all CPUs together, without an idle control.
    pub measured: Nanos,
    /// The number of stalls read, including those of an idle control.
    pub stalls_read: u64,
    /// The drawn stalls, by start. If not all are drawn, each span of time keeps its shortest and its longest of each
    /// lane, and the longest of all stay.
    pub stalls: Vec<DrawnStall>,
    pub lanes: Vec<Lane>,
    pub culprits: Vec<DrawnCulprit>,
    /// The combinations of part properties.
    pub sorts: Vec<PartSort>,
    /// Distributions, on the scale of nines.
    pub curves: Vec<Curve>,
    /// The offsets of stalls within a second, for all stalls read.
    pub offsets: OffsetMap,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    total: Nanos,
    max: Nanos,
    /// The stall counted last.
    last: Option<StallId>,
    of_last: Nanos,
}

/// Takes a run's rows as [`crate::SummaryBuilder`] does, and builds its picture.
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
    /// Stalls of the idle control that wait for their attribution.
    of_control: HashSet<StallId>,
    /// Lengths of the stalls, to three digits, if the manifest has no distribution.
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
    /// Begins the picture of a run with `stalls` stalls; keeps at most `most` of them.
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
        // In order of the CPUs, including those without stalls.
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
            // The name in the account: a started command had another name before it was executed.
            name: called
                .filter(|name| !name.is_empty())
                .unwrap_or_else(|| stall.victim.comm.to_string()),
        })
    }

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

    /// Adds the attribution of an earlier stall.
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
                    turns: part.turns,
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
                turns: 1,
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
        rows.order_by(|(a_at, a), (b_at, b)| b.total.cmp(&a.total).then(a_at.cmp(b_at)));
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

/// The summary's row of a culprit, with its triggers and rate.
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

/// Rounded up to three significant digits, like the probes' histograms.
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
