//! The worst case: the observed maximum with its exposure. Nothing is extrapolated from it.

use crate::cpu_summary::CpuSummary;
use crate::{PipelineSummary, TotalSummary};
use jitterscope_model::{CpuId, Nanos, PassiveCpu, RunManifest, ThreadAccount};
use schemars::JsonSchema;
use serde::Serialize;

/// What a maximum was observed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Exposed {
    /// CPUs: the exposure is the sum of their measured times, without an idle control.
    Cpus,
    /// Followed threads: the exposure is the sum of the times whose state is known.
    Threads,
    /// The messages of a pipeline: the exposure is the time in which they were sent.
    Messages,
}

/// The longest stall, latest wake-up, slowest message or longest wait of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WorstCase {
    /// The exact maximum, whether or not it has a row.
    pub longest_ns: Nanos,
    pub exposed: Exposed,
    /// The number of CPUs or threads; 1 for messages.
    pub of: usize,
    /// The time in which it would have been observed.
    pub exposure_ns: Nanos,
    /// The 95 % upper bound of the rate of longer ones, per hour of exposure (3 / exposure). Null if nothing was
    /// exposed, if kernel events that tell the longest were lost or missing, and if a stall chose the time, as in a
    /// saved moment of a watch.
    pub longer_below_per_hour: Option<f64>,
    /// The same of each CPU; absent unless the exposure is that of at least two CPUs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<WorstOfCpu>,
}

/// The worst case of one CPU.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WorstOfCpu {
    pub cpu: CpuId,
    /// The exact maximum of this CPU; null if it measured nothing.
    pub longest_ns: Option<Nanos>,
    /// The time in which it would have been observed.
    pub exposure_ns: Nanos,
    /// The 95 % upper bound of the rate of longer ones, per hour; null as for the run.
    pub longer_below_per_hour: Option<f64>,
}

impl WorstOfCpu {
    fn new(cpu: CpuId, longest: Option<Nanos>, exposure: Nanos) -> WorstOfCpu {
        WorstOfCpu {
            cpu,
            longest_ns: longest,
            exposure_ns: exposure,
            longer_below_per_hour: bound_per_hour(exposure),
        }
    }
}

fn bound_per_hour(exposure: Nanos) -> Option<f64> {
    rate_bound(exposure.as_secs_f64()).map(|per_sec| 3600.0 * per_sec)
}

/// The rate per second that so many seconds without an event exclude with 95 % confidence: 3 / seconds, the rule of three
/// (J. A. Hanley and A. Lippman-Hand, JAMA 249, 1983, 1743). Independent events of the rate r stay away for a time T
/// with the probability exp(-r T), which is 5 % at r T = 2.996.
///
/// The bound also holds for events longer than the longest that was seen: if events longer than x have the rate r(x),
/// then r(longest) T is distributed exponentially with the mean 1, for lengths of any continuous distribution.
///
/// `None` without exposure.
#[must_use]
pub fn rate_bound(seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| 3.0 / seconds)
}

impl WorstCase {
    /// `of`: the number of CPUs or threads.
    #[must_use]
    pub fn new(longest: Nanos, exposed: Exposed, of: usize, exposure: Nanos) -> WorstCase {
        WorstCase {
            longest_ns: longest,
            exposed,
            of,
            exposure_ns: exposure,
            longer_below_per_hour: bound_per_hour(exposure),
            cpus: Vec::new(),
        }
    }

    fn of_each(self, cpus: impl Iterator<Item = WorstOfCpu>) -> WorstCase {
        let cpus: Vec<WorstOfCpu> = cpus.collect();
        WorstCase {
            cpus: if cpus.len() > 1 { cpus } else { Vec::new() },
            ..self
        }
    }

    /// Withdraws the bounds: longer ones may have been missed.
    pub(crate) fn withdraw_bounds(&mut self) {
        self.longer_below_per_hour = None;
        for cpu in &mut self.cpus {
            cpu.longer_below_per_hour = None;
        }
    }
}

/// The worst case of a run; `None` if nothing was measured.
pub(crate) fn of_run(
    manifest: &RunManifest,
    cpus: &[CpuSummary],
    total: &TotalSummary,
    pipeline: Option<&PipelineSummary>,
) -> Option<WorstCase> {
    let control = manifest.idle_control();
    let spinning = cpus.iter().filter(|of| Some(of.cpu) != control);
    let mut found = of_probe(spinning, total)
        .or_else(|| of_messages(pipeline?))
        .or_else(|| of_threads(&manifest.threads))
        .or_else(|| of_watched(&manifest.passive))?;
    // A stall chose the time of a saved moment.
    if manifest.moment.is_some() {
        found.withdraw_bounds();
    }
    Some(found)
}

fn of_probe<'a>(
    cpus: impl Iterator<Item = &'a CpuSummary>,
    total: &TotalSummary,
) -> Option<WorstCase> {
    let longest = total.max_ns?;
    let whole = WorstCase::new(longest, Exposed::Cpus, total.cpus, total.measured_ns);
    let each = cpus.map(|of| WorstOfCpu::new(of.cpu, of.max_ns, of.measured_ns));
    Some(whole.of_each(each))
}

fn of_messages(pipeline: &PipelineSummary) -> Option<WorstCase> {
    let times = pipeline.consumers.iter().map(|of| &of.from_intended);
    let longest = times.filter(|of| of.count > 0).map(|of| of.max_ns).max()?;
    Some(WorstCase::new(
        longest,
        Exposed::Messages,
        1,
        pipeline.duration_ns,
    ))
}

fn of_threads(threads: &[ThreadAccount]) -> Option<WorstCase> {
    let longest = threads.iter().map(|of| of.longest_wait_ns).max()?;
    let known = |of: &ThreadAccount| of.followed_ns().saturating_sub(of.unknown_ns);
    let exposure = threads.iter().map(known).sum();
    Some(WorstCase::new(
        longest,
        Exposed::Threads,
        threads.len(),
        exposure,
    ))
}

fn of_watched(cpus: &[PassiveCpu]) -> Option<WorstCase> {
    let longest = cpus.iter().map(|of| of.longest_ns).max()?;
    let known = |of: &PassiveCpu| of.watched_ns().saturating_sub(of.unknown_ns);
    let exposure = cpus.iter().map(known).sum();
    let whole = WorstCase::new(longest, Exposed::Cpus, cpus.len(), exposure);
    let each = cpus
        .iter()
        .map(|of| WorstOfCpu::new(of.cpu, Some(of.longest_ns), known(of)));
    Some(whole.of_each(each))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_testing::SplitMix64;

    /// The events of a random run: their lengths.
    fn lengths(random: &mut SplitMix64, rate: f64, seconds: f64) -> Vec<f64> {
        let mut at = 0.0;
        let mut found = Vec::new();
        loop {
            at -= (1.0 - random.uniform()).ln() / rate;
            if at > seconds {
                return found;
            }
            // A heavy tail: the share of lengths above x is 1 / x.
            found.push(1.0 / (1.0 - random.uniform()));
        }
    }

    #[test]
    fn four_hours_without_an_event_exclude_three_quarters_of_one_an_hour() {
        let bound = rate_bound(4.0 * 3600.0).unwrap();
        assert!((3600.0 * bound - 0.75).abs() < 1e-9, "{bound}");
        assert_eq!(rate_bound(0.0), None);
    }

    /// With the true rate at the bound, exp(-3) = 4.98 % of the runs see no event. The rate of events above the longest
    /// is known here, too: it lies above the bound in as many runs.
    #[test]
    fn the_bound_is_wrong_in_one_run_of_twenty() {
        let (seconds, runs) = (50.0, 20_000);
        let bound = rate_bound(seconds).unwrap();
        let mut random = SplitMix64(3);
        let at_bound = (0..runs).filter(|_| lengths(&mut random, bound, seconds).is_empty());
        let none = at_bound.count() as f64 / f64::from(runs);
        let above_longest = |rate: f64, all: &[f64]| rate / all.iter().copied().fold(1.0, f64::max);
        let rate = 1.0;
        let wrong = (0..runs)
            .map(|_| lengths(&mut random, rate, seconds))
            .filter(|all| above_longest(rate, all) > bound);
        let wrong = wrong.count() as f64 / f64::from(runs);
        // Four standard deviations of a share of 5 % in so many runs are 0.6 %.
        for share in [none, wrong] {
            assert!((share - f64::exp(-3.0)).abs() < 0.006, "{none} {wrong}");
        }
    }
}
