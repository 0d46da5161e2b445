//! What a wake-up probe measured.

use crate::{AnyVersion, CpuId, EndedEarly, Nanos, ProbeResult, TickRate, Ticks};
use serde::{Deserialize, Serialize};

/// What a wake-up probe measured on one CPU. All lateness is in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeupResult {
    /// The CPU.
    pub cpu: CpuId,
    /// The probe's thread id.
    pub tid: i32,
    /// The first deadline that counted.
    #[serde(rename = "start_ticks", alias = "start")]
    pub start: Ticks,
    /// The last wake-up.
    #[serde(rename = "end_ticks", alias = "end")]
    pub end: Ticks,
    /// Wake-ups measured.
    pub wakeups: u64,
    /// Deadlines that were slept through.
    pub missed: u64,
    /// The smallest lateness.
    #[serde(rename = "min_ns", alias = "min")]
    pub min: Nanos,
    /// The largest.
    #[serde(rename = "max_ns", alias = "max")]
    pub max: Nanos,
    /// Their sum.
    #[serde(rename = "total_ns", alias = "sum")]
    pub sum: Nanos,
    /// (lateness, count) as it was, ascending: the highest of each bucket of a histogram of three
    /// significant digits, and last the exact maximum.
    #[serde(rename = "plain_ns", alias = "plain")]
    pub plain: Vec<(u64, u64)>,
    /// The same with the missed deadlines filled in.
    #[serde(rename = "corrected_ns", alias = "corrected")]
    pub corrected: Vec<(u64, u64)>,
    /// Wake-ups at or above the threshold.
    pub stalls: u64,
    /// Stalls whose record was dropped because the queue was full.
    pub dropped_records: u64,
    /// Why the measurement ended early, if it did.
    pub ended_early: Option<AnyVersion<EndedEarly>>,
}

/// How wake-ups were asked for, beyond what all probes have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeupConditions {
    /// Time between deadlines.
    pub period_ns: Nanos,
    /// Whether the CPUs were kept out of deep idle states (`/dev/cpu_dma_latency`) meanwhile.
    pub hold_latency: bool,
    /// The CPU that was measured to compare the others with, for nothing else was to run there.
    pub idle_control: Option<CpuId>,
}

impl WakeupResult {
    /// The same in the words of a spinning probe, for everything that counts stalls: samples are wake-ups,
    /// their lengths lateness. The time between is slept, so that nothing of it is unmeasured.
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
