//! hyperfine's format of `--export-json`: times in seconds, for readers of version 1 and of version 2.

use super::json::{IterationWithWords, iterations};
use jitterscope_analyze::guard::{Iteration, Series};
use jitterscope_model::Nanos;
use serde::Serialize;

#[derive(Serialize)]
struct File<'a> {
    schema_version: u32,
    primary_metric: &'static str,
    results: [Benchmark<'a>; 1],
}

/// A value of version 2.
#[derive(Serialize)]
struct Seconds {
    value: f64,
    unit: &'static str,
}

impl Seconds {
    fn of(time: Nanos) -> Seconds {
        Seconds {
            value: time.as_secs_f64(),
            unit: "second",
        }
    }
}

/// An iteration for version 2.
#[derive(Serialize)]
struct Measurement {
    time_wall_clock: Seconds,
    time_cpu: Seconds,
    time_user: Seconds,
    time_system: Seconds,
    exit_code: Option<u8>,
}

impl Measurement {
    fn of(one: &Iteration) -> Measurement {
        Measurement {
            time_wall_clock: Seconds::of(one.time),
            time_cpu: Seconds::of(one.made.user + one.made.system),
            time_user: Seconds::of(one.made.user),
            time_system: Seconds::of(one.made.system),
            exit_code: one.made.exit_code,
        }
    }
}

#[derive(Serialize)]
struct Summary {
    time_wall_clock: Statistics,
}

#[derive(Serialize)]
struct Statistics {
    unit: &'static str,
    count: usize,
    mean: f64,
    stddev: Option<f64>,
    median: f64,
    min: f64,
    max: f64,
}

/// hyperfine's fields, and one of our own, which its readers skip.
#[derive(Serialize)]
struct Benchmark<'a> {
    command: String,
    summary: Summary,
    measurements: Vec<Measurement>,
    mean: f64,
    stddev: Option<f64>,
    median: f64,
    user: f64,
    system: f64,
    min: f64,
    max: f64,
    times: Vec<f64>,
    exit_codes: Vec<Option<u8>>,
    jitterscope: Ours<'a>,
}

#[derive(Serialize)]
struct Ours<'a> {
    label: &'a str,
    contaminated_above_fraction: f64,
    contaminated: usize,
    unknown: usize,
    iterations: Vec<IterationWithWords<'a>>,
}

/// The series for readers of hyperfine's JSON; `None` if no iteration ran to its end. An iteration that the user ended
/// has no time, and only our own field lists it.
///
/// # Errors
/// None in practice: JSON can represent all fields.
pub fn hyperfine(series: &Series, command: String) -> Result<Option<String>, serde_json::Error> {
    let headline = series.headline();
    let (Some(median), Some(mean), Some(min), Some(max)) =
        (headline.median, headline.mean, headline.min, headline.max)
    else {
        return Ok(None);
    };
    let whole = || series.iterations.iter().filter(|one| one.is_whole());
    let average = |sum: Nanos| sum.as_secs_f64() / headline.counted as f64;
    let stddev = headline.deviation.map(Nanos::as_secs_f64);
    let time_wall_clock = Statistics {
        unit: "second",
        count: headline.counted,
        mean: mean.as_secs_f64(),
        stddev,
        median: median.as_secs_f64(),
        min: min.as_secs_f64(),
        max: max.as_secs_f64(),
    };
    let file = File {
        schema_version: 2,
        primary_metric: "time_wall_clock",
        results: [Benchmark {
            command,
            summary: Summary { time_wall_clock },
            measurements: whole().map(Measurement::of).collect(),
            mean: mean.as_secs_f64(),
            stddev,
            median: median.as_secs_f64(),
            user: average(whole().map(|one| one.made.user).sum()),
            system: average(whole().map(|one| one.made.system).sum()),
            min: min.as_secs_f64(),
            max: max.as_secs_f64(),
            times: whole().map(|one| one.time.as_secs_f64()).collect(),
            exit_codes: whole().map(|one| one.made.exit_code).collect(),
            jitterscope: Ours {
                label: &series.label,
                contaminated_above_fraction: series.limit,
                contaminated: headline.contaminated,
                unknown: headline.unknown,
                iterations: iterations(series),
            },
        }],
    };
    let mut text = serde_json::to_string_pretty(&file)?;
    text.push('\n');
    Ok(Some(text))
}
