//! What a pipeline probe measured.

use crate::{AnyVersion, CpuId, Nanos, Ticks};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Which of the pipeline's threads.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum PipelineRole {
    /// Stamps and publishes.
    Producer,
    /// Receives and accounts.
    #[default]
    Accumulator,
    /// Receives, accounts and writes the journal.
    Journaller,
}

impl PipelineRole {
    /// Its name in JSON, in files and as a thread's suffix.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            PipelineRole::Producer => "producer",
            PipelineRole::Accumulator => "accumulator",
            PipelineRole::Journaller => "journaller",
        }
    }
}

impl fmt::Display for PipelineRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How the producer keeps its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PipelinePacing {
    /// On a fixed schedule: after a stall it catches up, and what it is late by is measured.
    #[default]
    Schedule,
    /// An interval after each actual publication, as the ancestor did: a stall of the producer moves all
    /// that follows, so that only one message shows it.
    AfterPublication,
}

/// Times of one kind: an exact account of the extremes and the sum, and a histogram.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageTimes {
    /// How many.
    pub count: u64,
    /// The shortest, exactly; 0 when there is none.
    #[serde(rename = "min_ns", alias = "min")]
    pub min: Nanos,
    /// The longest, exactly.
    #[serde(rename = "max_ns", alias = "max")]
    pub max: Nanos,
    /// Their sum; saturates at 584 years.
    #[serde(rename = "total_ns", alias = "sum")]
    pub sum: Nanos,
    /// (time in nanoseconds, count), ascending: the highest of each bucket of a histogram of three
    /// significant digits, and last the exact maximum.
    #[serde(rename = "plain_ns", alias = "plain")]
    pub plain: Vec<(u64, u64)>,
}

impl MessageTimes {
    /// The mean, rounded down; 0 when there is none.
    #[must_use]
    pub fn mean(&self) -> Nanos {
        Nanos(self.sum.0 / self.count.max(1))
    }

    /// The time that `quantile` (0 to 1) of all do not exceed, to three digits; 0 when there is none.
    /// The rank is the count times the quantile, rounded up, as HdrHistogram has it.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Nanos {
        // The last bits of a product of binary fractions must not lift a whole rank to the next one.
        let rank = (quantile.clamp(0.0, 1.0) * self.count as f64 * (1.0 - f64::EPSILON)).ceil();
        let rank = (rank as u64).max(1);
        let mut seen = 0u64;
        for (value, count) in &self.plain {
            seen = seen.saturating_add(*count);
            if seen >= rank {
                return Nanos(*value).min(self.max);
            }
        }
        self.max
    }
}

/// How a pipeline was set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineSetup {
    /// Bytes of a record.
    #[serde(rename = "record_length_bytes", alias = "record_length")]
    pub record_length: u64,
    /// Where the records came from.
    pub input: String,
    /// How many records that file holds.
    pub input_records: u64,
    /// Slots of the ring.
    pub ring: u64,
    /// Time between publications; zero sends as fast as the ring takes it.
    pub interval_ns: Nanos,
    /// How the interval was kept.
    pub pacing: PipelinePacing,
    /// Messages to be measured; `None` when a length of time was asked for.
    pub messages: Option<u64>,
    /// Messages before those that count.
    pub warm_up_messages: u64,
    /// Pause between warm-up and measurement.
    pub pause_ns: Nanos,
    /// Whether there was a journaller.
    pub journaller: bool,
    /// Whether the process's memory could be locked.
    pub memory_locked: bool,
    /// Whether the placement was refused and `--force` was given.
    pub forced: bool,
}

/// One of the pipeline's threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineThread {
    /// Which.
    pub role: PipelineRole,
    /// Its thread id.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// The only CPU it could run on; `None` when it was left to the scheduler.
    pub cpu: Option<CpuId>,
    /// SCHED_FIFO priority; `None` for the fair class.
    pub fifo_priority: Option<u32>,
    /// Page faults after its set-up.
    pub page_faults: u64,
    /// Involuntary context switches after its set-up.
    pub involuntary_switches: u64,
    /// CPU time after its set-up.
    pub cpu_time_ns: Nanos,
}

/// What the producer did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublisherResult {
    /// Messages that count.
    pub sent: u64,
    /// Whether everything was sent; false when it was stopped.
    pub completed: bool,
    /// Time between publications.
    pub inter: MessageTimes,
    /// How late publications were.
    pub lateness: MessageTimes,
    /// How often it found the ring full.
    pub full_waits: u64,
    /// How long it waited then, in all.
    pub full_waited_ns: Nanos,
    /// The longest of these waits.
    pub full_longest_ns: Nanos,
}

/// What a consumer did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineConsumer {
    /// Which.
    pub role: PipelineRole,
    /// Messages that count.
    pub received: u64,
    /// Messages that did not follow their predecessor: always 0.
    pub disordered: u64,
    /// From the actual publication to the reception.
    pub transit: MessageTimes,
    /// From the intended publication to the reception.
    pub from_intended: MessageTimes,
    /// Time between receptions.
    pub inter: MessageTimes,
    /// What counted as slow, from the intended time.
    pub slow_above_ns: Nanos,
    /// Slow messages.
    pub slow: u64,
    /// Those without a row, for the queue was full.
    pub slow_dropped: u64,
}

/// What became of the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineJournal {
    /// The file; a bare name lies in the run's folder.
    pub path: String,
    /// Records written.
    pub written: u64,
    /// Messages received without a record, for there was no room.
    pub unwritten: u64,
    /// How often the journaller had to wait for room.
    pub waits: u64,
    /// Why it ended before the measurement did.
    pub ended: Option<JournalEnd>,
}

/// Why a journal could not be continued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEnd {
    /// Whether there was no room left on the disk.
    pub disk_full: bool,
    /// What failed.
    pub why: AnyVersion<JournalFault>,
}

/// What kept a journal from being continued. In JSON it has its stable, hyphenated `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum JournalFault {
    /// More room was handed to the journaller than its stock holds: a bug.
    StockOverfilled,
    /// It could not be written.
    System {
        /// What the system said.
        system: String,
    },
}

/// What a pipeline measured. All times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineResult {
    /// How it was set.
    pub setup: PipelineSetup,
    /// Its threads.
    pub threads: Vec<PipelineThread>,
    /// When the schedule began.
    #[serde(rename = "start_ticks", alias = "start")]
    pub start: Ticks,
    /// The last reception, or publication if that was later.
    #[serde(rename = "end_ticks", alias = "end")]
    pub end: Ticks,
    /// What the producer did.
    pub producer: PublisherResult,
    /// What the consumers did, the accumulator first.
    pub consumers: Vec<PipelineConsumer>,
    /// The journal, if there was one.
    pub journal: Option<PipelineJournal>,
}

impl PipelineResult {
    /// What the consumer of this role did.
    #[must_use]
    pub fn consumer(&self, role: PipelineRole) -> Option<&PipelineConsumer> {
        self.consumers.iter().find(|consumer| consumer.role == role)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times(plain: &[(u64, u64)]) -> MessageTimes {
        let count = plain.iter().map(|(_, n)| n).sum();
        let sum = Nanos(plain.iter().map(|(v, n)| v * n).sum());
        let (min, max) = (
            plain.first().map_or(0, |p| p.0),
            plain.last().map_or(0, |p| p.0),
        );
        MessageTimes {
            count,
            min: Nanos(min),
            max: Nanos(max),
            sum,
            plain: plain.to_vec(),
        }
    }

    #[test]
    fn quantiles_are_those_of_the_counts() {
        let times = times(&[(100, 90), (200, 9), (5000, 1)]);
        let at = |q| times.quantile(q).0;
        assert_eq!(
            [
                at(0.0),
                at(0.5),
                at(0.9),
                at(0.91),
                at(0.99),
                at(0.999),
                at(1.0)
            ],
            [100, 100, 100, 200, 200, 5000, 5000]
        );
        assert_eq!(times.mean(), Nanos((9000 + 1800 + 5000) / 100));
        let none = MessageTimes::default();
        assert_eq!((none.quantile(0.5), none.mean()), (Nanos(0), Nanos(0)));
    }

    proptest! {
        #[test]
        fn a_quantile_leaves_its_share_at_or_below_it(
            counts in proptest::collection::btree_map(0u64..1_000_000, 1u64..1000, 1..40),
            q in 0.0f64..=1.0,
        ) {
            let plain: Vec<(u64, u64)> = counts.into_iter().collect();
            let times = times(&plain);
            let value = times.quantile(q).0;
            let below = |limit: u64| plain.iter().filter(|p| p.0 <= limit).map(|p| p.1).sum::<u64>() as f64;
            let rank = q * times.count as f64;
            prop_assert!(below(value) + 1e-6 >= rank);
            prop_assert!(value == plain[0].0 || below(value - 1) <= rank + 1e-6);
        }
    }
}
