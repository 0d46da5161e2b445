//! What delayed a pipeline's slow messages, and those above the 99th percentile.

use jitterscope_model::{
    Attribution, CulpritSums, KeyLevel, Nanos, Phase, PipelineRole, PutInOrder, RunManifest, Stall,
    StallId, Subject,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The number of separate culprits of a consumer; the rest share one row for each kind and phase.
const MOST: usize = 4096;
/// The number of messages that may wait for their attribution.
const PENDING: usize = 1 << 16;
/// The percentile of [`BlameLevel::AboveP99`].
const LEVEL: f64 = 0.99;

/// The messages of a consumer that a [`Blame`] covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlameLevel {
    /// Messages above the consumer's 99th percentile, from the intended publication.
    AboveP99,
    Slow,
}

/// What delayed messages of one consumer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Blame {
    pub role: PipelineRole,
    pub level: BlameLevel,
    /// The covered messages took longer than this.
    pub longer_than_ns: Nanos,
    /// The number of these messages.
    pub above: u64,
    /// The number of them with a row and an attribution.
    pub split: u64,
    /// The sum of their latencies. Messages that queue up behind one stall share its time, so it can exceed the run.
    pub total_ns: Nanos,
    /// The culprits, by total time, largest first.
    pub rows: Vec<BlameRow>,
}

/// One program in one phase of the messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlameRow {
    /// The phase in which it delayed messages.
    pub phase: Phase,
    #[serde(flatten)]
    pub subject: Subject,
    /// The number of its threads or workers: 0 if it has none, 64 for 64 or more.
    pub threads: u64,
    /// The number of delayed messages.
    pub messages: u64,
    /// Parts of messages whose thread moved to another CPU meanwhile.
    pub moved: u64,
    pub total_ns: Nanos,
    /// The shortest delay of one message.
    pub min_ns: Nanos,
    /// The longest delay of one message.
    pub max_ns: Nanos,
    /// The share of all time of these messages.
    pub share: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    messages: u64,
    moved: u64,
    total: Nanos,
    /// Of the messages before the last one added.
    min: Option<Nanos>,
    max: Nanos,
    /// The last message added, and its part so far.
    last: Option<StallId>,
    of_last: Nanos,
}

impl Sum {
    /// The least of all messages, which is certain once the parts of the last one are complete.
    fn least(&self) -> Option<Nanos> {
        let last = self.last.map(|_| self.of_last);
        self.min.into_iter().chain(last).min()
    }
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
    sums: CulpritSums<Phase, Sum>,
}

/// Sums the stalls and attributions of a run, in order of their ids.
#[derive(Debug, Default)]
pub(crate) struct BlameBuilder {
    consumers: Vec<Consumer>,
    /// Messages that wait for their attribution.
    pending: VecDeque<(StallId, i32, Nanos)>,
}

impl BlameBuilder {
    pub(crate) fn new(manifest: &RunManifest, key: KeyLevel) -> BlameBuilder {
        let Some(pipeline) = manifest.pipeline.as_ref().filter(|_| manifest.attributed) else {
            return BlameBuilder::default();
        };
        let consumers = pipeline.consumers.iter().flat_map(|consumer| {
            let thread = pipeline
                .threads
                .iter()
                .find(|thread| thread.role == consumer.role);
            let times = &consumer.from_intended;
            let p99 = times.quantile(LEVEL);
            let above = times
                .plain
                .iter()
                .filter(|(value, _)| *value > p99.0)
                .map(|(_, n)| n)
                .sum();
            let levels = [
                (BlameLevel::AboveP99, p99, above),
                (BlameLevel::Slow, Nanos::ZERO, consumer.slow),
            ];
            thread.into_iter().flat_map(move |thread| {
                levels.map(|(level, longer_than, above)| Consumer {
                    role: consumer.role,
                    tid: thread.tid,
                    level,
                    longer_than,
                    above,
                    split: 0,
                    total: Nanos::ZERO,
                    sums: CulpritSums::new(key, MOST),
                })
            })
        });
        BlameBuilder {
            consumers: consumers.collect(),
            pending: VecDeque::new(),
        }
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
        while self
            .pending
            .front()
            .is_some_and(|(id, ..)| *id < attribution.stall)
        {
            self.pending.pop_front();
        }
        let Some((_, tid, length)) = self
            .pending
            .pop_front_if(|(id, ..)| *id == attribution.stall)
        else {
            return;
        };
        let wanted =
            |consumer: &&mut Consumer| consumer.tid == tid && length > consumer.longer_than;
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
            let phase = part.phase.clone().unwrap_or(Phase::NoVerdict);
            let sum = self.sums.of(phase, &part.culprit.subject);
            // Several threads of one program may have delayed the same message.
            if sum.last != Some(attribution.stall) {
                sum.min = sum.least();
                sum.last = Some(attribution.stall);
                sum.messages += 1;
                sum.of_last = Nanos::ZERO;
            }
            sum.moved += u64::from(part.moved_from.is_some());
            sum.total += part.net;
            sum.of_last += part.net;
            sum.max = sum.max.max(sum.of_last);
        }
    }

    fn finish(self) -> Blame {
        let total = self.total;
        let mut rows: Vec<BlameRow> = self
            .sums
            .into_rows()
            .into_iter()
            .map(|row| BlameRow {
                threads: row.threads(),
                phase: row.extra,
                subject: row.subject,
                messages: row.value.messages,
                moved: row.value.moved,
                total_ns: row.value.total,
                min_ns: row.value.least().unwrap_or_default(),
                max_ns: row.value.max,
                share: row.value.total.0 as f64 / total.0.max(1) as f64,
            })
            .collect();
        rows.order_by(|a, b| {
            (b.total_ns, &a.phase, &a.subject).cmp(&(a.total_ns, &b.phase, &b.subject))
        });
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

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Evidence, Part, SchedClass, Task};

    fn consumer() -> Consumer {
        Consumer {
            role: PipelineRole::Accumulator,
            tid: 1,
            level: BlameLevel::Slow,
            longer_than: Nanos::ZERO,
            above: 0,
            split: 0,
            total: Nanos::ZERO,
            sums: CulpritSums::new(KeyLevel::Program, MOST),
        }
    }

    /// A program that starts a thread for each message is one culprit, with the share of all its threads.
    #[test]
    fn short_jobs_of_one_program_are_one_row() {
        let bash = |tid: i32, net| {
            let class = Some(SchedClass::Fair(Some(0)));
            let task = Task {
                tid: Some(tid),
                comm: "bash".into(),
                class,
                ..Task::default()
            };
            let part = Part::inside(Subject::Thread(task), Nanos(net), Evidence::ThreadRecords);
            part.in_phase(Phase::ProducerStalled)
        };
        let mut consumer = consumer();
        for id in 0..778 {
            let tid = 2 * id as i32;
            let moved = Part {
                moved_from: Some(jitterscope_model::CpuId(1)),
                ..bash(tid + 1, 30)
            };
            let parts = vec![bash(tid, 70), moved];
            consumer.add(
                &Attribution {
                    stall: StallId(id),
                    parts,
                },
                Nanos(100),
            );
        }
        let blame = consumer.finish();
        assert_eq!(blame.rows.len(), 1);
        let row = &blame.rows[0];
        assert_eq!((row.messages, row.moved, row.threads), (778, 778, 64));
        assert_eq!(
            (row.total_ns, row.max_ns, row.share),
            (Nanos(77_800), Nanos(100), 1.0)
        );
    }

    /// A message counts once in a row for all its threads, and the row's maximum is that of a message.
    #[test]
    fn a_message_counts_once_per_program_that_delays_it() {
        let part = |tid: i32, net| {
            let task = Task {
                tid: Some(tid),
                comm: "bash".into(),
                ..Task::default()
            };
            Part::inside(Subject::Thread(task), Nanos(net), Evidence::ThreadRecords)
        };
        let mut consumer = consumer();
        for (id, nets) in [vec![40], vec![10, 20, 30], vec![50], vec![]]
            .into_iter()
            .enumerate()
        {
            let parts = (1..).zip(&nets).map(|(tid, net)| part(tid, *net)).collect();
            consumer.add(
                &Attribution {
                    stall: StallId(id as u64),
                    parts,
                },
                Nanos(100),
            );
        }
        let blame = consumer.finish();
        assert_eq!((blame.split, blame.total_ns), (4, Nanos(400)));
        let row = &blame.rows[0];
        assert_eq!((blame.rows.len(), &row.phase), (1, &Phase::NoVerdict));
        assert_eq!(
            (row.messages, row.total_ns, row.max_ns),
            (3, Nanos(150), Nanos(60))
        );
        // The least message, not the least part.
        assert_eq!(row.min_ns, Nanos(40));
        assert_eq!((row.share, row.threads, row.moved), (0.375, 3, 0));
    }

    #[test]
    fn a_level_has_the_messages_that_took_longer() {
        let slow = Consumer {
            level: BlameLevel::AboveP99,
            longer_than: Nanos(100),
            ..consumer()
        };
        let other = Consumer {
            tid: 2,
            ..consumer()
        };
        let mut builder = BlameBuilder {
            consumers: vec![slow, consumer(), other],
            pending: VecDeque::new(),
        };
        let victim = jitterscope_model::ThreadRef {
            tid: 1,
            comm: jitterscope_model::Comm::new("x"),
        };
        for (id, length) in [(0, 50), (1, 100), (2, 101), (3, 150)] {
            let (start, end) = (
                jitterscope_model::Ticks(0),
                jitterscope_model::Ticks(length),
            );
            let stall = Stall {
                id: StallId(id),
                cpu: jitterscope_model::CpuId(0),
                victim,
                start,
                end,
            };
            builder.stall(&stall, Nanos(length));
        }
        // The first has no attribution; one attribution has no stall.
        for id in [1, 2, 3, 4] {
            builder.attribution(&Attribution {
                stall: StallId(id),
                parts: Vec::new(),
            });
        }
        let reported = builder.finish();
        assert_eq!(
            reported.iter().map(|of| of.split).collect::<Vec<_>>(),
            [2, 3, 0]
        );
        assert_eq!(
            reported.iter().map(|of| of.total_ns.0).collect::<Vec<_>>(),
            [251, 351, 0]
        );
        assert_eq!(
            [reported[0].level, reported[1].level],
            [BlameLevel::AboveP99, BlameLevel::Slow]
        );
    }
}
