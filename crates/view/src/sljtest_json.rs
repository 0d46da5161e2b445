//! JSON of SLJ Test's screen.

use crate::ended::ended_early;
use crate::sljtest::{OutlierBuffer, SljSettings, recommendations};
use jitterscope_analyze::periods::PeriodSummary;
use jitterscope_analyze::sljtest::{DeltaBins, average_and_deviation};
use jitterscope_model::{ProbeResult, SCHEMA_VERSION, TickRate, Ticks};
use serde::Serialize;

/// The measurements of one CPU.
#[derive(Clone, Copy, Debug)]
pub struct SljCpu<'a> {
    pub bins: &'a DeltaBins,
    pub result: &'a ProbeResult,
    /// The fill level of the outlier buffer, if outliers are written to a file.
    pub outliers: Option<OutlierBuffer>,
}

#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    ticks_per_second: u64,
    settings: Settings,
    cpus: Vec<Cpu>,
    periods: Option<&'a PeriodSummary>,
}

#[derive(Serialize)]
struct Settings {
    bins: usize,
    min_ticks: u64,
    knee_ticks: u64,
}

#[derive(Serialize)]
struct Cpu {
    cpu: u32,
    bins: Vec<Bin>,
    statistics: Statistics,
    recommendations: Vec<String>,
    outliers: Option<Outliers>,
    ended_early: Option<String>,
}

#[derive(Serialize)]
struct Bin {
    /// Inclusive; null for the last bin, which is open.
    upper_ticks: Option<u64>,
    upper_ns: Option<f64>,
    count: u64,
    sum_ticks: u128,
}

#[derive(Serialize)]
struct Statistics {
    samples: u64,
    runtime_ns: u64,
    measured_ns: u64,
    /// The share of the runtime, 0 to 1.
    measured_fraction: f64,
    /// Deltas that came too fast to be kept one by one; they are binned to three digits.
    dropped_records: u64,
    ticks: Spread,
    ns: Spread,
}

#[derive(Serialize)]
struct Spread {
    min: f64,
    average: f64,
    standard_deviation: f64,
    max: f64,
}

#[derive(Serialize)]
struct Outliers {
    seen: u64,
    kept: u64,
}

/// The measurement as one JSON document, with a newline at its end.
///
/// # Errors
/// None in practice: JSON can represent all its map keys.
pub fn json(
    settings: SljSettings,
    rate: TickRate,
    cpus: &[SljCpu<'_>],
    periods: Option<&PeriodSummary>,
) -> Result<String, serde_json::Error> {
    let document = Document {
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
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
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
