//! JSON of SLJ Test's screen.

use crate::ended::ended_early;
use crate::sljtest::{OutlierBuffer, SljSettings, recommendations};
use jitterscope_analyze::periods::PeriodSummary;
use jitterscope_analyze::sljtest::{DeltaBins, average_and_deviation};
use jitterscope_model::{ProbeResult, SCHEMA_VERSION, TickRate, Ticks};
use schemars::JsonSchema;
use serde::Serialize;

/// The measurements of one CPU.
#[derive(Clone, Copy, Debug)]
pub struct SljCpu<'a> {
    pub bins: &'a DeltaBins,
    pub result: &'a ProbeResult,
    /// The fill level of the outlier buffer, if outliers are written to a file.
    pub outliers: Option<OutlierBuffer>,
}

/// SLJ Test's screen as data.
#[derive(Serialize, JsonSchema)]
pub struct SljDocument<'a> {
    /// Version of this structure.
    schema_version: u32,
    /// Rate of the measuring clock.
    ticks_per_second: u64,
    settings: Settings,
    cpus: Vec<Cpu>,
    /// Periods of the long deltas; null if there was no search.
    periods: Option<&'a PeriodSummary>,
}

#[derive(Serialize, JsonSchema)]
struct Settings {
    /// The number of bins.
    bins: usize,
    min_ticks: u64,
    knee_ticks: u64,
}

#[derive(Serialize, JsonSchema)]
struct Cpu {
    /// Its number.
    cpu: u32,
    bins: Vec<Bin>,
    statistics: Statistics,
    /// SLJ Test's recommendations for its settings.
    recommendations: Vec<String>,
    /// The outlier buffer; null if outliers are not written to a file.
    outliers: Option<Outliers>,
    /// Why it ended early, in words; null if it did not.
    ended_early: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Bin {
    /// Inclusive; null for the last bin, which is open.
    upper_ticks: Option<u64>,
    upper_ns: Option<f64>,
    /// Deltas in it.
    count: u64,
    sum_ticks: u128,
}

#[derive(Serialize, JsonSchema)]
struct Statistics {
    /// Deltas, those below the threshold included.
    samples: u64,
    runtime_ns: u64,
    measured_ns: u64,
    /// The share of the runtime, 0 to 1.
    measured_fraction: f64,
    /// Deltas that came too fast to be kept one by one; they are binned to three digits.
    dropped_records: u64,
    /// The deltas in ticks.
    ticks: Spread,
    /// The deltas in nanoseconds.
    ns: Spread,
}

/// Of all deltas, in the unit that the name of the field says.
#[derive(Serialize, JsonSchema)]
struct Spread {
    /// The shortest delta.
    min: f64,
    /// Their mean.
    average: f64,
    /// Of the sample.
    standard_deviation: f64,
    /// The longest delta.
    max: f64,
}

#[derive(Serialize, JsonSchema)]
struct Outliers {
    /// Outliers that occurred.
    seen: u64,
    /// Outliers that are in the file.
    kept: u64,
}

/// The measurement for programs.
#[must_use]
pub fn json<'a>(
    settings: SljSettings,
    rate: TickRate,
    cpus: &[SljCpu<'_>],
    periods: Option<&'a PeriodSummary>,
) -> SljDocument<'a> {
    SljDocument {
        schema_version: SCHEMA_VERSION,
        ticks_per_second: rate.hz,
        settings: Settings {
            bins: settings.bins,
            min_ticks: settings.min,
            knee_ticks: settings.knee,
        },
        cpus: cpus
            .iter()
            .map(|cpu| of_cpu(settings, rate, *cpu))
            .collect(),
        periods,
    }
}

fn of_cpu(settings: SljSettings, rate: TickRate, cpu: SljCpu<'_>) -> Cpu {
    let SljCpu {
        bins,
        result,
        outliers,
    } = cpu;
    let ns = |ticks: f64| ticks * 1e9 / rate.hz.max(1) as f64;
    let (average, deviation) = average_and_deviation(result);
    let spread = |of: &dyn Fn(f64) -> f64| Spread {
        min: of(result.min_ticks as f64),
        average: of(average),
        standard_deviation: of(deviation),
        max: of(result.max_ticks as f64),
    };
    let runtime = result.end.since(result.start);
    Cpu {
        cpu: result.cpu.0,
        bins: bins
            .counts
            .iter()
            .zip(&bins.sums)
            .enumerate()
            .map(|(at, (count, sum))| Bin {
                upper_ticks: bins.upper.get(at).map(|upper| upper.0),
                upper_ns: bins.upper.get(at).map(|upper| ns(upper.0 as f64)),
                count: *count,
                sum_ticks: *sum,
            })
            .collect(),
        statistics: Statistics {
            samples: result.samples,
            runtime_ns: rate.nanos(runtime).0,
            measured_ns: rate.nanos(Ticks(result.sum_ticks)).0,
            measured_fraction: if runtime.0 == 0 {
                0.0
            } else {
                result.sum_ticks as f64 / runtime.0 as f64
            },
            dropped_records: result.dropped_records,
            ticks: spread(&|ticks| ticks),
            ns: spread(&ns),
        },
        recommendations: recommendations(settings, bins, result, outliers),
        outliers: outliers.map(|o| Outliers {
            seen: o.seen,
            kept: o.seen.min(o.size),
        }),
        ended_early: result.ended_early.as_ref().map(ended_early),
    }
}
