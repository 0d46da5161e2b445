//! The measurements of one CPU, and of all together.

use crate::FineNanos;
use crate::counts::{Counts, Ppm};
use crate::cpu_summary::{CpuSummary, TotalSummary};
use crate::moments::mean_and_deviation;
use crate::percentiles::Percentiles;
use crate::worst_case::rate_bound;
use jitterscope_model::{Nanos, ProbeResult, RunManifest, TickRate, Ticks, WakeupResult};

/// The percentiles of all deltas and of the wait of a random instant.
pub(crate) const OF_TIME: [(&str, Ppm); 7] = [
    ("50", Ppm(500_000)),
    ("90", Ppm(900_000)),
    ("99", Ppm(990_000)),
    ("99.9", Ppm(999_000)),
    ("99.99", Ppm(999_900)),
    ("99.999", Ppm(999_990)),
    ("99.9999", Ppm(999_999)),
];

/// A percentile of stalls, wake-ups or messages needs this many values above it: one that rests on fewer is not
/// reliable.
pub const SUPPORT: u128 = 10;

impl TotalSummary {
    /// The number of waits of `wait` nanoseconds that fit into the time above a percentile; `above` is the share of
    /// that time.
    pub(crate) fn waits_above(&self, above: f64, wait: f64) -> f64 {
        self.measured_ns.0 as f64 * above / wait.max(1.0)
    }

    /// The wait of an instant at one of [`OF_TIME`], nanoseconds; `None` if it is unknown or rests on fewer than
    /// [`SUPPORT`] waits.
    pub(crate) fn supported_wait(&self, percentile: &str) -> Option<f64> {
        let (_, Ppm(share)) = OF_TIME.into_iter().find(|(name, _)| *name == percentile)?;
        let wait = self
            .instant_percentiles_ns
            .get(percentile)
            .copied()
            .flatten()?
            .0;
        let above = 1.0 - f64::from(share) / 1e6;
        (self.waits_above(above, wait) >= SUPPORT as f64).then_some(wait)
    }
}

/// A ratio; zero if the whole is zero.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

fn per_second(count: u64, time: Nanos) -> f64 {
    if time == Nanos::ZERO {
        0.0
    } else {
        count as f64 / time.as_secs_f64()
    }
}

fn percentiles(rate: TickRate, of: impl Fn(Ppm) -> Option<f64>) -> Percentiles {
    OF_TIME
        .into_iter()
        .map(|(name, share)| {
            (
                name,
                of(share).map(|ticks| FineNanos::from_ticks(ticks, rate)),
            )
        })
        .collect()
}

fn of_deltas(counts: &Counts, rate: TickRate) -> Percentiles {
    percentiles(rate, |share| {
        counts.quantile(share).map(|ticks| ticks as f64)
    })
}

fn of_stalls(counts: &Counts, rate: TickRate) -> Percentiles {
    percentiles(rate, |share| {
        counts
            .supported_quantile(share, SUPPORT)
            .map(|ticks| ticks as f64)
    })
}

/// While a probe sleeps, an instant waits for nothing.
fn of_instants(counts: &Counts, sleeper: bool, rate: TickRate) -> Percentiles {
    percentiles(rate, |share| {
        if sleeper {
            None
        } else {
            counts.residual(share)
        }
    })
}

/// The counts of all deltas; empty if the recorder was killed, because the counts of short ones are missing.
fn all_deltas(result: &ProbeResult) -> Counts {
    match result.samples {
        0 => Counts::default(),
        _ => Counts::deltas(result),
    }
}

/// The summary of one CPU; `wakeup` has the exact measurements of a sleeping probe.
pub(crate) fn summarize(
    result: &ProbeResult,
    wakeup: Option<&WakeupResult>,
    manifest: &RunManifest,
) -> CpuSummary {
    let rate = manifest.rate;
    let known = |count: u64| (!manifest.is_from_rows()).then_some(count);
    let deltas = all_deltas(result);
    let span = result.end.since(result.start);
    let measured = rate.nanos(span);
    // A spinner's deltas sum to the covered time; a sleeper's lateness does not.
    let sum = wakeup.map_or(result.sum_ticks, |wakeup| rate.ticks(wakeup.sum).0);
    let moments = mean_and_deviation(result.samples, sum, result.sum_squares);
    let stalls = Counts::stalls(result);
    let any = result.samples > 0;
    CpuSummary {
        cpu: result.cpu,
        tid: result.tid,
        measured_ns: measured,
        samples: known(result.samples),
        samples_per_sec: known(result.samples).map(|samples| per_second(samples, measured)),
        coverage: known(result.sum_ticks).map(|sum| share(sum, span.0)),
        floor_ns: any.then(|| FineNanos::from_ticks(result.min_ticks as f64, rate)),
        floor_ticks: any.then_some(result.min_ticks),
        mean_ns: moments.map(|(mean, _)| FineNanos::from_ticks(mean, rate)),
        stddev_ns: moments.map(|(_, deviation)| FineNanos::from_ticks(deviation, rate)),
        percentiles_ns: of_deltas(&deltas, rate),
        max_ns: result
            .has_longest()
            .then(|| rate.nanos(Ticks(result.max_ticks))),
        stalls: result.stalls,
        stalls_per_sec: per_second(result.stalls, measured),
        stalls_per_sec_bound: rate_bound(measured.as_secs_f64()).filter(|_| result.stalls == 0),
        stall_min_ns: stalls
            .quantile(Ppm(0))
            .map(|ticks| rate.nanos(Ticks(ticks))),
        stall_mean_ns: (result.stalls > 0).then(|| {
            FineNanos::from_ticks(result.stalled_ticks as f64 / result.stalls as f64, rate)
        }),
        stall_percentiles_ns: of_stalls(&stalls, rate),
        instant_percentiles_ns: of_instants(&deltas, wakeup.is_some(), rate),
        stolen_ns: rate.nanos(Ticks(result.stalled_ticks)),
        stolen_fraction: share(result.stalled_ticks, span.0),
        dropped_records: result.dropped_records,
        page_faults: known(result.page_faults),
        involuntary_switches: known(result.involuntary_switches),
        ended_early: result.ended_early.clone(),
    }
}

/// The summary of all CPUs except an idle control.
pub(crate) fn total(manifest: &RunManifest) -> TotalSummary {
    let (rate, control) = (manifest.rate, manifest.idle_control());
    let results: Vec<&ProbeResult> = manifest
        .results
        .iter()
        .filter(|r| Some(r.cpu) != control)
        .collect();

    let sum =
        |of: fn(&ProbeResult) -> u64| results.iter().map(|r| of(r)).fold(0, u64::saturating_add);
    let measured = rate.nanos(Ticks(sum(|r| r.end.since(r.start).0)));
    let (stalls, stalled) = (
        sum(|r| r.stalls),
        rate.nanos(Ticks(sum(|r| r.stalled_ticks))),
    );
    let merge = |of: fn(&ProbeResult) -> Counts| {
        results
            .iter()
            .map(|r| of(r))
            .fold(Counts::default(), |all, one| all.merged(&one))
    };
    let (deltas, all_stalls) = (merge(all_deltas), merge(Counts::stalls));
    let measuring = results.iter().filter(|r| r.samples > 0);
    let floor = measuring.clone().map(|r| r.min_ticks).min();
    let samples = measuring.map(|r| r.samples).fold(0, u64::saturating_add);
    let between = match manifest.wakeups.as_slice() {
        [] => sum(|r| r.sum_ticks),
        woken => {
            let woken = woken.iter().filter(|of| Some(of.cpu) != control);
            rate.ticks(woken.map(|of| of.sum).sum()).0
        }
    };
    let mean = (samples > 0).then(|| FineNanos::from_ticks(between as f64 / samples as f64, rate));
    // Among equals the first, so that the result does not depend on the iteration order.
    let longest = results
        .iter()
        .filter(|r| r.has_longest())
        .rev()
        .max_by_key(|r| r.max_ticks);
    TotalSummary {
        cpus: results.len(),
        measured_ns: measured,
        stalls,
        stalls_per_sec: per_second(stalls, measured),
        stalls_per_sec_bound: rate_bound(measured.as_secs_f64()).filter(|_| stalls == 0),
        stolen_ns: stalled,
        stolen_fraction: share(stalled.0, measured.0),
        min_ns: floor.map(|ticks| FineNanos::from_ticks(ticks as f64, rate)),
        mean_ns: mean,
        max_ns: longest.map(|r| rate.nanos(Ticks(r.max_ticks))),
        max_cpu: longest.map(|r| r.cpu),
        percentiles_ns: of_deltas(&deltas, rate),
        stall_min_ns: all_stalls
            .quantile(Ppm(0))
            .map(|ticks| rate.nanos(Ticks(ticks))),
        stall_mean_ns: (stalls > 0)
            .then(|| FineNanos::from_ticks(sum(|r| r.stalled_ticks) as f64 / stalls as f64, rate)),
        stall_percentiles_ns: of_stalls(&all_stalls, rate),
        instant_percentiles_ns: of_instants(&deltas, !manifest.wakeups.is_empty(), rate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_reported_if_ten_of_its_length_lie_above_it() {
        // The 99th percentile has 10 ms of a second above it, the median half a second.
        for (percentile, wait, supported) in [
            ("99", 1_000.0, true),
            ("99", 999_000.0, true),
            ("99", 1_001_000.0, false),
            ("50", 49_900_000.0, true),
            ("50", 50_100_000.0, false),
            ("99", 0.0, true),
        ] {
            let waits = [("50", None), (percentile, Some(FineNanos(wait)))];
            let total = TotalSummary {
                measured_ns: Nanos(1_000_000_000),
                instant_percentiles_ns: waits.into_iter().collect(),
                ..TotalSummary::default()
            };
            assert_eq!(
                total.supported_wait(percentile),
                supported.then_some(wait),
                "{percentile} {wait}"
            );
            assert_eq!(total.supported_wait("99.9"), None, "not known");
            assert_eq!(total.supported_wait("12"), None, "no such percentile");
        }
    }
}
