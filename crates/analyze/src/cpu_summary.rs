//! What was measured on CPUs, each and together.

use crate::FineNanos;
use crate::percentiles::Percentiles;
use jitterscope_model::{AnyVersion, CpuId, EndedEarly, Nanos};
use serde::Serialize;

/// What was measured on one CPU.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuSummary {
    /// Which.
    pub cpu: CpuId,
    /// The probe's thread.
    pub tid: i32,
    /// From the first clock read to the last.
    pub measured_ns: Nanos,
    /// Deltas measured.
    pub samples: u64,
    /// Of them, in a second.
    pub samples_per_sec: f64,
    /// Share of the measured time that lay between two measured reads.
    pub coverage: f64,
    /// The smallest delta; null when nothing was measured, as for all that follow.
    pub floor_ns: Option<FineNanos>,
    /// The smallest delta in ticks.
    pub floor_ticks: Option<u64>,
    /// Mean delta; of a wake-up probe, mean lateness.
    pub mean_ns: Option<FineNanos>,
    /// Standard deviation of the deltas.
    pub stddev_ns: Option<FineNanos>,
    /// Of all deltas.
    pub percentiles_ns: Percentiles,
    /// The longest delta.
    pub max_ns: Option<Nanos>,
    /// Deltas at or above the threshold.
    pub stalls: u64,
    /// Of them, in a second.
    pub stalls_per_sec: f64,
    /// The shortest stall, as its bucket in a histogram of three digits; null without any.
    pub stall_min_ns: Option<Nanos>,
    /// Mean stall; null without any.
    pub stall_mean_ns: Option<FineNanos>,
    /// Of the stalls alone; null where fewer than ten lie above.
    pub stall_percentiles_ns: Percentiles,
    /// Of the wait that an instant at random suffers until the next clock read: every instant counts
    /// alike, so that a long stall weighs by its length. All null for a probe that sleeps.
    pub instant_percentiles_ns: Percentiles,
    /// Sum of the stalls.
    pub stolen_ns: Nanos,
    /// That, of the measured time.
    pub stolen_fraction: f64,
    /// Stalls without a record, for the queue was full; totals and percentiles count them.
    pub dropped_records: u64,
    /// Page faults of the probe itself.
    pub page_faults: u64,
    /// Involuntary context switches of the probe.
    pub involuntary_switches: u64,
    /// Why the measurement ended early, if it did.
    pub ended_early: Option<AnyVersion<EndedEarly>>,
}

/// All CPUs together, but for an idle control.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TotalSummary {
    /// How many CPUs.
    pub cpus: usize,
    /// Sum of their measured times.
    pub measured_ns: Nanos,
    /// Stalls.
    pub stalls: u64,
    /// Of them, in a second of one CPU.
    pub stalls_per_sec: f64,
    /// The rate that 95 % of such measurements would have shown to be lower, when no stall was seen at
    /// all (3 / time); null otherwise.
    pub stalls_per_sec_bound: Option<f64>,
    /// Sum of the stalls.
    pub stolen_ns: Nanos,
    /// That, of the measured time.
    pub stolen_fraction: f64,
    /// The longest.
    pub max_ns: Option<Nanos>,
    /// Where that was.
    pub max_cpu: Option<CpuId>,
    /// Of all deltas of all CPUs.
    pub percentiles_ns: Percentiles,
    /// The shortest stall, as its bucket in a histogram of three digits; null without any.
    pub stall_min_ns: Option<Nanos>,
    /// Mean stall; null without any.
    pub stall_mean_ns: Option<FineNanos>,
    /// Of all stalls.
    pub stall_percentiles_ns: Percentiles,
    /// Of the wait of an instant at random.
    pub instant_percentiles_ns: Percentiles,
}
