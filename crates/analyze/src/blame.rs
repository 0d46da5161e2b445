//! Who made a pipeline's slow messages slow, and those above the 99th percentile.

use jitterscope_model::{Attribution, CulpritKind, Name, Nanos, PipelineRole, RunManifest, Stall, StallId};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// Culprits told apart; the rest are summed up under one name.
const MOST: usize = 4096;
/// Messages that may wait for their attribution.
const PENDING: usize = 1 << 16;
/// The percentile that the issue is about.
const LEVEL: f64 = 0.99;

/// Which messages of a consumer are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BlameLevel {
    /// Those above its 99th percentile, from the intended publication.
    AboveP99,
    /// All that were slow.
    Slow,
}

/// What held up messages of one consumer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Blame {
    /// Whose messages.
    pub role: PipelineRole,
    /// Which of them.
    pub level: BlameLevel,
    /// Those that took longer than this.
    pub longer_than_ns: Nanos,
    /// How many these are.
    pub above: u64,
    /// Those of them that have a row and were split.
    pub split: u64,
    /// The sum of their latencies: messages that queue up behind one stall share its time, so that it can be
    /// longer than the run.
    pub total_ns: Nanos,
    /// What it was made of, most first.
    pub rows: Vec<BlameRow>,
}

/// One culprit in one part of the messages' way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlameRow {
    /// Where it held messages up: `producer stalled`, `consumer not running`, `queueing`, ...
    pub phase: String,
    /// What kind of thing.
    pub kind: CulpritKind,
    /// Its name.
    pub name: Name,
    /// What else identifies it.
    pub detail: Name,
    /// Messages that it held up.
    pub messages: u64,
    /// For how long in all.
    pub total_ns: Nanos,
    /// The longest in one message.
    pub max_ns: Nanos,
    /// Of all time of these messages.
    pub share: f64,
}

type Key = (String, CulpritKind, Name, Name);

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    messages: u64,
    total: Nanos,
    max: Nanos,
}

#[derive(Debug)]
struct Consumer {
    role: PipelineRole,
    tid: i32,
    level: BlameLevel,
    longer_than: Nanos,
    above: u64,
    split: u64,
    total: Nanos,
    sums: BTreeMap<Key, Sum>,
}

/// Takes in stalls and attributions of a run in order of their ids.
#[derive(Debug, Default)]
pub(crate) struct BlameBuilder {
    consumers: Vec<Consumer>,
    /// Messages that wait for their attribution.
    pending: VecDeque<(StallId, i32, Nanos)>,
}

impl BlameBuilder {
    pub(crate) fn new(manifest: &RunManifest) -> BlameBuilder {
        let Some(pipeline) = manifest.pipeline.as_ref().filter(|_| manifest.attributed) else {
            return BlameBuilder::default();
        };
        let consumers = pipeline.consumers.iter().flat_map(|consumer| {
            let thread = pipeline.threads.iter().find(|thread| thread.role == consumer.role);
            let times = &consumer.from_intended;
            let p99 = times.quantile(LEVEL);
            let above = times.plain.iter().filter(|(value, _)| *value > p99.0).map(|(_, n)| n).sum();
            let levels = [(BlameLevel::AboveP99, p99, above), (BlameLevel::Slow, Nanos::ZERO, consumer.slow)];
            thread.into_iter().flat_map(move |thread| {
                levels.map(|(level, longer_than, above)| Consumer {
                    role: consumer.role,
                    tid: thread.tid,
                    level,
                    longer_than,
                    above,
                    split: 0,
                    total: Nanos::ZERO,
                    sums: BTreeMap::new(),
                })
            })
        });
        BlameBuilder { consumers: consumers.collect(), pending: VecDeque::new() }
    }

    pub(crate) fn stall(&mut self, stall: &Stall, length: Nanos) {
        if self.consumers.is_empty() {
            return;
        }
        if self.pending.len() >= PENDING {
            self.pending.pop_front();
        }
        self.pending.push_back((stall.id, stall.victim.tid, length));
    }

    pub(crate) fn attribution(&mut self, attribution: &Attribution) {
        while self.pending.front().is_some_and(|(id, ..)| *id < attribution.stall) {
            self.pending.pop_front();
        }
        let Some((_, tid, length)) = self.pending.pop_front_if(|(id, ..)| *id == attribution.stall) else {
            return;
        };
        let wanted = |consumer: &&mut Consumer| consumer.tid == tid && length > consumer.longer_than;
        for consumer in self.consumers.iter_mut().filter(wanted) {
            consumer.add(attribution, length);
        }
    }

    pub(crate) fn finish(self) -> Vec<Blame> {
        self.consumers.into_iter().map(Consumer::finish).collect()
    }
}

impl Consumer {
    fn add(&mut self, attribution: &Attribution, length: Nanos) {
        self.split += 1;
        self.total += length;
        for part in &attribution.parts {
            let culprit = &part.culprit;
            let key = (part.evidence.clone(), culprit.kind, culprit.name.clone(), culprit.detail.clone());
            let full = self.sums.len() >= MOST && !self.sums.contains_key(&key);
            let key = if full { (key.0, key.1, "others".into(), "".into()) } else { key };
            let sum = self.sums.entry(key).or_default();
            sum.messages += 1;
            sum.total += part.net;
            sum.max = sum.max.max(part.net);
        }
    }

    fn finish(self) -> Blame {
        let total = self.total;
        let mut rows: Vec<BlameRow> = self
            .sums
            .into_iter()
            .map(|((phase, kind, name, detail), sum)| BlameRow {
                phase,
                kind,
                name,
                detail,
                messages: sum.messages,
                total_ns: sum.total,
                max_ns: sum.max,
                share: sum.total.0 as f64 / total.0.max(1) as f64,
            })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
        Blame {
            role: self.role,
            level: self.level,
            longer_than_ns: self.longer_than,
            above: self.above,
            split: self.split,
            total_ns: total,
            rows,
        }
    }
}
