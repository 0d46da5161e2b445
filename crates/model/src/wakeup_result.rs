//! The measurements of a wake-up probe.

use crate::{AnyVersion, CpuId, EndedEarly, Nanos, ProbeResult, TickRate, Ticks};
use serde::{Deserialize, Serialize};

/// The measurements of a wake-up probe on one CPU. All lateness is in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeupResult {
    pub cpu: CpuId,
    /// The probe's thread id.
    pub tid: i32,
    /// The first measured deadline.
    #[serde(rename = "start_ticks")]
    pub start: Ticks,
    /// The last wake-up.
    #[serde(rename = "end_ticks")]
    pub end: Ticks,
    /// The number of wake-ups.
    pub wakeups: u64,
    /// Deadlines that passed during a sleep.
    pub missed: u64,
    #[serde(rename = "min_ns")]
    pub min: Nanos,
    #[serde(rename = "max_ns")]
    pub max: Nanos,
    #[serde(rename = "total_ns")]
    pub sum: Nanos,
    /// Measured (lateness, count), ascending: the highest lateness of each bucket of a histogram with three significant
    /// digits, and at the end the exact maximum.
    #[serde(rename = "plain_ns")]
    pub plain: Vec<(u64, u64)>,
    /// The same, with estimates for the missed deadlines added.
    #[serde(rename = "corrected_ns")]
    pub corrected: Vec<(u64, u64)>,
    /// The number of wake-ups with at least the threshold's lateness.
    pub stalls: u64,
    /// Stalls whose record was dropped because the queue was full.
    pub dropped_records: u64,
    /// Why the measurement ended early, if it did.
    pub ended_early: Option<AnyVersion<EndedEarly>>,
}

/// The settings of a wake-up probe, beyond those that all probes share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeupConditions {
    /// Time between deadlines.
    pub period_ns: Nanos,
    /// Whether the CPUs were kept out of deep idle states (`/dev/cpu_dma_latency`).
    pub hold_latency: bool,
    /// The CPU that was measured as a baseline for the others, because it was meant to run nothing else.
    pub idle_control: Option<CpuId>,
}

impl WakeupResult {
    /// The same in the form of a spinning probe, for code that counts stalls: wake-ups become samples, lateness becomes
    /// their length. The time in between is sleep, so no time is unmeasured.
    #[must_use]
    pub fn as_probe_result(
        &self,
        threshold: Nanos,
        planned_end: Ticks,
        rate: TickRate,
    ) -> ProbeResult {
        let ticks = |nanos: u64| rate.ticks(Nanos(nanos)).0;
        let (short, long): (Vec<_>, Vec<_>) = self
            .plain
            .iter()
            .copied()
            .partition(|(late, _)| *late < threshold.0);
        let below = short
            .iter()
            .map(|(late, n)| (u32::try_from(ticks(*late)).unwrap_or(u32::MAX), *n));
        let above: Vec<(u64, u64)> = long.iter().map(|(late, n)| (ticks(*late), *n)).collect();
        let square = |(late, n): &(u64, u64)| u128::from(ticks(*late)).pow(2) * u128::from(*n);
        ProbeResult {
            cpu: self.cpu,
            tid: self.tid,
            start: self.start,
            end: self.end,
            planned_end,
            samples: self.wakeups,
            sum_ticks: self.end.since(self.start).0,
            sum_squares: self.plain.iter().map(square).sum(),
            min_ticks: ticks(self.min.0),
            max_ticks: ticks(self.max.0),
            threshold_ticks: ticks(threshold.0),
            below: below.collect(),
            stalled_ticks: above.iter().map(|(late, n)| late.saturating_mul(*n)).sum(),
            above,
            stalls: self.stalls,
            dropped_records: self.dropped_records,
            own_bookkeeping: 0,
            page_faults: 0,
            involuntary_switches: 0,
            ended_early: self.ended_early.clone(),
        }
    }
}
