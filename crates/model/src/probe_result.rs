//! What a spin probe measured on one CPU, exactly.

use crate::{AnyVersion, CpuId, EndedEarly, Nanos, Ticks};
use serde::{Deserialize, Serialize};

/// The whole measurement of one CPU. Counts below the threshold are kept a tick each, so that every
/// percentile down to the floor is exact; above it a histogram of three significant digits stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeResult {
    /// The CPU.
    pub cpu: CpuId,
    /// The probe's thread id.
    pub tid: i32,
    /// First read of the measurement.
    #[serde(rename = "start_ticks", alias = "start")]
    pub start: Ticks,
    /// Last read of the measurement.
    #[serde(rename = "end_ticks", alias = "end")]
    pub end: Ticks,
    /// When the measurement should have ended; `end` is later by a stall, earlier after Ctrl-C.
    #[serde(rename = "planned_end_ticks", alias = "planned_end")]
    pub planned_end: Ticks,
    /// Clock deltas measured: their number.
    pub samples: u64,
    /// Their sum in ticks; with no hole it equals `end - start`.
    pub sum_ticks: u64,
    /// Sum of their squares, in ticks squared; above 2^64 after hours, hence 128 bits (a decimal
    /// string in JSON, whose numbers end at 2^53).
    #[serde(with = "decimal_u128")]
    pub sum_squares: u128,
    /// The smallest.
    pub min_ticks: u64,
    /// The largest.
    pub max_ticks: u64,
    /// Deltas at or above this many ticks are stalls.
    pub threshold_ticks: u64,
    /// (length in ticks, count) of the deltas under the threshold, ascending, without zeros.
    #[serde(rename = "below_ticks", alias = "below")]
    pub below: Vec<(u32, u64)>,
    /// (length in ticks, count) of the stalls, ascending: the highest length of each bucket of a
    /// histogram of three significant digits.
    #[serde(rename = "above_ticks", alias = "above")]
    pub above: Vec<(u64, u64)>,
    /// Stalls: how many.
    pub stalls: u64,
    /// Stalls: their sum in ticks.
    pub stalled_ticks: u64,
    /// Stalls without a record, because the queue was full or they were our own bookkeeping; totals still count
    /// them.
    pub dropped_records: u64,
    /// Those of them that were the probe's own bookkeeping: directly behind a stall, and no longer than storing
    /// one takes. None where the threshold is well above that.
    #[serde(default)]
    pub own_bookkeeping: u64,
    /// Page faults that the probe's own thread took while measuring.
    pub page_faults: u64,
    /// Involuntary context switches of the probe's thread.
    pub involuntary_switches: u64,
    /// Why the measurement of this CPU ended early, if it did.
    pub ended_early: Option<AnyVersion<EndedEarly>>,
}

/// What one CPU saw in one reporting interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntervalRow {
    /// The CPU.
    pub cpu: CpuId,
    /// Start of the interval on the measuring clock.
    pub start: Ticks,
    /// Its end.
    pub end: Ticks,
    /// Stalls that ended in it.
    pub count: u64,
    /// The longest of them.
    pub max: Nanos,
    /// Their sum.
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
