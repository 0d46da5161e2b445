//! The measurements of a pipeline.

use crate::{AnyVersion, CpuId, Nanos, Ticks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The role of a pipeline's thread.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PipelineRole {
    /// Timestamps and publishes messages.
    Producer,
    /// Receives messages and accounts for them.
    #[default]
    Accumulator,
    /// Receives messages, accounts for them and writes the journal.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PipelinePacing {
    /// On a fixed schedule: it catches up after a stall, and the lateness is measured.
    #[default]
    Schedule,
    /// One interval after each actual publication, as in perf-workshop: a stall of the producer delays all later
    /// messages, so only one message shows it.
    AfterPublication,
}

/// How a pipeline's messages travel. Without a word of its own in a stored run: over the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PipelineVia {
    /// Over a ring buffer in shared memory.
    #[default]
    Ring,
    /// As UDP datagrams over the machine's loopback device.
    Loopback,
    /// As datagrams of a pair of Unix sockets.
    Unix,
    /// As UDP datagrams over a pair of virtual Ethernet devices, each in a network of its own.
    Veth,
}

impl PipelineVia {
    /// Its name on the command line and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            PipelineVia::Ring => "ring",
            PipelineVia::Loopback => "loopback",
            PipelineVia::Unix => "unix",
            PipelineVia::Veth => "veth",
        }
    }

    /// Whether messages pass through the kernel.
    #[must_use]
    pub fn is_in_kernel(self) -> bool {
        self != PipelineVia::Ring
    }
}

impl fmt::Display for PipelineVia {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How a pipeline's journal is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JournalWriting {
    /// Into mapped memory that is allocated on disk and faulted in ahead: the journaller waits for no disk.
    #[default]
    Mapped,
    /// With a system call for each record, into the page cache: the journaller waits where the kernel allocates blocks
    /// or throttles its writers.
    PageCache,
}

/// Times of one kind: exact extremes and sum, and a histogram.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageTimes {
    /// The number of times.
    pub count: u64,
    /// The shortest, exact; 0 if there is none.
    #[serde(rename = "min_ns")]
    pub min: Nanos,
    /// The longest, exact.
    #[serde(rename = "max_ns")]
    pub max: Nanos,
    /// Their sum; saturates at 584 years.
    #[serde(rename = "total_ns")]
    pub sum: Nanos,
    /// (time in nanoseconds, count), ascending: the highest time of each bucket of a histogram with three significant
    /// digits, and at the end the exact maximum.
    #[serde(rename = "plain_ns")]
    pub plain: Vec<(u64, u64)>,
}

impl MessageTimes {
    /// The mean, rounded down; 0 if there is none.
    #[must_use]
    pub fn mean(&self) -> Nanos {
        Nanos(self.sum.0 / self.count.max(1))
    }

    /// The quantile (0 to 1) of the times, with three digits; 0 if there is none. The rank is the count times the
    /// quantile, rounded up, as in HdrHistogram.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Nanos {
        // Rounding errors of the product must not raise a whole rank to the next one.
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

/// The settings of a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PipelineSetup {
    /// Size of a record, bytes.
    #[serde(rename = "record_length_bytes")]
    pub record_length: u64,
    /// The source of the records.
    pub input: String,
    /// The number of records in that file.
    pub input_records: u64,
    /// Number of slots of the ring; through the kernel, the number of messages that may be on their way.
    pub ring: u64,
    /// How messages travel.
    #[serde(default)]
    pub via: PipelineVia,
    /// How the journal is written, if there is one.
    #[serde(default)]
    pub journal: JournalWriting,
    /// Time between publications; with zero, the producer sends as fast as the ring accepts messages.
    pub interval_ns: Nanos,
    /// How the producer keeps the interval.
    pub pacing: PipelinePacing,
    /// The number of messages to measure; `None` if the user set a duration.
    pub messages: Option<u64>,
    /// The number of messages before the measured ones.
    pub warm_up_messages: u64,
    /// Pause between warm-up and measurement.
    pub pause_ns: Nanos,
    /// Whether there was a journaller.
    pub journaller: bool,
    /// Whether the process's memory was locked.
    pub memory_locked: bool,
    /// Whether `--force` overrode a refusal of the placement.
    pub forced: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PipelineThread {
    pub role: PipelineRole,
    pub tid: i32,
    pub comm: String,
    /// The only CPU it could run on; `None` if the scheduler chose.
    pub cpu: Option<CpuId>,
    /// SCHED_FIFO priority; `None` for the fair class.
    pub fifo_priority: Option<u32>,
    /// Page faults after setup.
    pub page_faults: u64,
    /// Involuntary context switches after setup.
    pub involuntary_switches: u64,
    /// CPU time after setup.
    pub cpu_time_ns: Nanos,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublisherResult {
    /// The number of measured messages.
    pub sent: u64,
    /// Whether all messages were sent; false if it was stopped.
    pub completed: bool,
    /// Time between publications.
    pub inter: MessageTimes,
    pub lateness: MessageTimes,
    /// How often it found the ring full.
    pub full_waits: u64,
    /// The total time that it waited for a full ring.
    pub full_waited_ns: Nanos,
    /// The longest of these waits.
    pub full_longest_ns: Nanos,
}

/// The measurements of a consumer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineConsumer {
    pub role: PipelineRole,
    /// The number of measured messages.
    pub received: u64,
    /// Messages that did not directly follow their predecessor: always 0.
    pub disordered: u64,
    /// From the actual publication to the reception.
    pub transit: MessageTimes,
    /// From the intended publication to the reception.
    pub from_intended: MessageTimes,
    /// Time between receptions.
    pub inter: MessageTimes,
    /// The threshold for slow messages, from the intended time.
    pub slow_above_ns: Nanos,
    pub slow: u64,
    /// Slow messages without a row, because the queue was full.
    pub slow_dropped: u64,
}

/// The state of the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PipelineJournal {
    /// The file; a bare name is in the run's folder.
    pub path: String,
    /// Records in it.
    pub written: u64,
    /// Messages received without a record, because there was no room.
    pub unwritten: u64,
    /// How often the journaller had to wait for room.
    pub waits: u64,
    /// Why it ended before the measurement did.
    pub ended: Option<JournalEnd>,
}

/// Why a journal ended early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JournalEnd {
    /// Whether the disk was full.
    pub disk_full: bool,
    pub why: AnyVersion<JournalFault>,
}

/// Why a journal ended early. In JSON it has its stable, hyphenated `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum JournalFault {
    /// The journaller was given more room than its stock can hold: a bug.
    StockOverfilled,
    /// It could not be written.
    System { system: String },
}

/// The measurements of a pipeline. All times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineResult {
    pub setup: PipelineSetup,
    pub threads: Vec<PipelineThread>,
    /// When the schedule began.
    #[serde(rename = "start_ticks")]
    pub start: Ticks,
    /// The last reception, or publication if that was later.
    #[serde(rename = "end_ticks")]
    pub end: Ticks,
    pub producer: PublisherResult,
    /// The consumers' measurements, the accumulator's first.
    pub consumers: Vec<PipelineConsumer>,
    /// The journal, if there was one.
    pub journal: Option<PipelineJournal>,
}

impl PipelineResult {
    /// The measurements of the consumer with this role.
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
