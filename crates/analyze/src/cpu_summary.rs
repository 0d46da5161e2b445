//! The measurements of CPUs, each and together.

use crate::FineNanos;
use crate::percentiles::Percentiles;
use jitterscope_model::{AnyVersion, CpuId, EndedEarly, Nanos};
use schemars::JsonSchema;
use serde::Serialize;

/// The measurements of one CPU.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CpuSummary {
    pub cpu: CpuId,
    pub tid: i32,
    /// From the first clock read to the last.
    pub measured_ns: Nanos,
    /// The number of samples; null if the recorder was killed, like the next two.
    pub samples: Option<u64>,
    /// Samples per second.
    pub samples_per_sec: Option<f64>,
    /// Share of the measured time that lay between two measured reads.
    pub coverage: Option<f64>,
    /// The smallest delta; null if nothing was measured, like the following fields.
    pub floor_ns: Option<FineNanos>,
    /// The smallest delta in ticks.
    pub floor_ticks: Option<u64>,
    /// The mean delta; for a wake-up probe, the mean lateness.
    pub mean_ns: Option<FineNanos>,
    /// Standard deviation of the deltas.
    pub stddev_ns: Option<FineNanos>,
    #[schemars(extend("propertyNames" = {"pattern": r"^\d+(\.\d+)?$"}))]
    pub percentiles_ns: Percentiles,
    pub max_ns: Option<Nanos>,
    /// Deltas at or above the threshold.
    pub stalls: u64,
    /// Stalls per second.
    pub stalls_per_sec: f64,
    /// The 95 % upper bound of the stall rate if there was no stall (3 / time); null otherwise.
    pub stalls_per_sec_bound: Option<f64>,
    /// The shortest stall, as its bucket in a three-digit histogram; null without stalls.
    pub stall_min_ns: Option<Nanos>,
    /// The mean stall; null without stalls.
    pub stall_mean_ns: Option<FineNanos>,
    /// Percentiles of the stalls alone; null where fewer than ten lie above.
    #[schemars(extend("propertyNames" = {"pattern": r"^\d+(\.\d+)?$"}))]
    pub stall_percentiles_ns: Percentiles,
    /// Percentiles of the wait of a random instant until the next clock read: every instant counts alike, so a long
    /// stall weighs by its length. All null for a probe that sleeps.
    #[schemars(extend("propertyNames" = {"pattern": r"^\d+(\.\d+)?$"}))]
    pub instant_percentiles_ns: Percentiles,
    /// Sum of the stalls.
    pub stolen_ns: Nanos,
    /// The stolen share of the measured time.
    pub stolen_fraction: f64,
    /// Stalls without a record, because the queue was full; totals and percentiles count them.
    pub dropped_records: u64,
    /// Page faults of the probe itself; null if the recorder was killed.
    pub page_faults: Option<u64>,
    /// Involuntary context switches of the probe; null likewise.
    pub involuntary_switches: Option<u64>,
    /// Why the measurement ended early, if it did.
    pub ended_early: Option<AnyVersion<EndedEarly>>,
}

/// All CPUs together except an idle control.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct TotalSummary {
    /// The number of CPUs.
    pub cpus: usize,
    /// The sum of their measured times.
    pub measured_ns: Nanos,
    pub stalls: u64,
    /// Stalls per second of one CPU.
    pub stalls_per_sec: f64,
    /// The 95 % upper bound of the stall rate if there was no stall (3 / time); null otherwise.
    pub stalls_per_sec_bound: Option<f64>,
    /// Sum of the stalls.
    pub stolen_ns: Nanos,
    /// The stolen share of the measured time.
    pub stolen_fraction: f64,
    /// The smallest delta of any CPU; null if nothing was measured.
    pub min_ns: Option<FineNanos>,
    /// The mean delta of all CPUs; null likewise.
    pub mean_ns: Option<FineNanos>,
    pub max_ns: Option<Nanos>,
    pub max_cpu: Option<CpuId>,
    /// Percentiles of all deltas of all CPUs.
    #[schemars(extend("propertyNames" = {"pattern": r"^\d+(\.\d+)?$"}))]
    pub percentiles_ns: Percentiles,
    /// The shortest stall, as its bucket in a three-digit histogram; null without stalls.
    pub stall_min_ns: Option<Nanos>,
    /// The mean stall; null without stalls.
    pub stall_mean_ns: Option<FineNanos>,
    #[schemars(extend("propertyNames" = {"pattern": r"^\d+(\.\d+)?$"}))]
    pub stall_percentiles_ns: Percentiles,
    /// Percentiles of the wait of a random instant.
    #[schemars(extend("propertyNames" = {"pattern": r"^\d+(\.\d+)?$"}))]
    pub instant_percentiles_ns: Percentiles,
}
