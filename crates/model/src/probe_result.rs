//! The exact measurements of a spin probe on one CPU.

use crate::{AnyVersion, CpuId, EndedEarly, Nanos, Ticks};
use serde::{Deserialize, Serialize};

/// The whole measurement of one CPU. Below the threshold there is one count per tick, so percentiles there are exact;
/// above it there is a histogram with three significant digits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeResult {
    pub cpu: CpuId,
    /// The probe's thread id.
    pub tid: i32,
    /// First read of the measurement.
    #[serde(rename = "start_ticks")]
    pub start: Ticks,
    /// Last read of the measurement.
    #[serde(rename = "end_ticks")]
    pub end: Ticks,
    /// The planned end of the measurement; `end` may be later by a stall, or earlier after Ctrl-C.
    #[serde(rename = "planned_end_ticks")]
    pub planned_end: Ticks,
    /// The number of clock deltas.
    pub samples: u64,
    /// Their sum in ticks; without a hole it equals `end - start`.
    pub sum_ticks: u64,
    /// The sum of their squares, in ticks squared. It exceeds 2^64 after hours, hence 128 bits (a decimal string in
    /// JSON, whose numbers end at 2^53).
    #[serde(with = "decimal_u128")]
    pub sum_squares: u128,
    /// The smallest delta, ticks.
    pub min_ticks: u64,
    /// The largest delta, ticks.
    pub max_ticks: u64,
    /// The threshold: deltas of at least this many ticks are stalls.
    pub threshold_ticks: u64,
    /// (length in ticks, count) of the deltas below the threshold, ascending, without zero counts.
    #[serde(rename = "below_ticks")]
    pub below: Vec<(u32, u64)>,
    /// (length in ticks, count) of the stalls, ascending: the highest length of each bucket of a histogram with three
    /// significant digits.
    #[serde(rename = "above_ticks")]
    pub above: Vec<(u64, u64)>,
    /// The number of stalls.
    pub stalls: u64,
    /// The sum of stalls, in ticks.
    pub stalled_ticks: u64,
    /// Stalls without a record, because the queue was full or they were our own bookkeeping; totals include them.
    pub dropped_records: u64,
    /// Those of them that were the probe's own bookkeeping: directly after a stall, and no longer than storing one
    /// takes. None if the threshold is well above that.
    #[serde(default)]
    pub own_bookkeeping: u64,
    /// Page faults of the probe's thread during the measurement.
    pub page_faults: u64,
    /// Involuntary context switches of the probe's thread.
    pub involuntary_switches: u64,
    /// Why the measurement of this CPU ended early, if it did.
    pub ended_early: Option<AnyVersion<EndedEarly>>,
}

impl ProbeResult {
    /// Whether there is a longest delta. Where the recorder was killed, it is the longest stall, and the number of
    /// samples is not known.
    #[must_use]
    pub fn has_longest(&self) -> bool {
        self.samples > 0 || self.stalls > 0
    }
}

/// The measurements of one CPU in one reporting interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntervalRow {
    pub cpu: CpuId,
    /// Start of the interval on the measuring clock.
    pub start: Ticks,
    pub end: Ticks,
    /// The number of stalls that ended in it.
    pub count: u64,
    /// The longest of them.
    pub max: Nanos,
    pub stolen: Nanos,
}

mod decimal_u128 {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(value: &u128, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&value.to_string())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<u128, D::Error> {
        String::deserialize(d)?.parse().map_err(D::Error::custom)
    }
}
