//! What `hyperfine --export-json` and `guard --export-json` write: times in seconds. hyperfine 2 lists `measurements`,
//! hyperfine 1 `times`; `guard` writes both.

use super::{Benchmark, BenchmarkTool, ResultsError, Unchecked, distinct, is_possible, parsed};
use jitterscope_model::Nanos;
use serde::Deserialize;
use serde::de::IgnoredAny;

#[derive(Deserialize)]
struct File {
    results: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    command: String,
    name: Option<String>,
    times: Option<Vec<f64>>,
    measurements: Option<Vec<Measurement>>,
    /// Only in files of `guard`.
    jitterscope: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Measurement {
    time_wall_clock: Seconds,
}

#[derive(Deserialize)]
struct Seconds {
    value: f64,
}

/// The times of a command in such a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HyperfineTimes {
    pub command: String,
    /// The user's name for it, if there is one.
    pub name: Option<String>,
    /// All times, in order; not empty.
    pub times: Vec<Nanos>,
    /// Whether `guard` measured them, and not hyperfine.
    pub by_guard: bool,
}

/// The times of all commands of a file.
///
/// # Errors
/// It is not such a file, has no command, or its times are impossible.
pub fn hyperfine_times(json: &[u8]) -> Result<Vec<HyperfineTimes>, ResultsError> {
    let file: File = parsed(BenchmarkTool::Hyperfine, json)?;
    if file.results.is_empty() {
        return Err(ResultsError::Empty);
    }
    file.results.into_iter().map(times_of).collect()
}

fn times_of(entry: Entry) -> Result<HyperfineTimes, ResultsError> {
    let Entry {
        command,
        name,
        times,
        measurements,
        jitterscope,
    } = entry;
    let seconds = times.unwrap_or_else(|| {
        let all = measurements.unwrap_or_default().into_iter();
        all.map(|one| one.time_wall_clock.value).collect()
    });
    let wrong = match seconds.as_slice() {
        [] => Some("there is neither a list of times nor one of measurements"),
        all if !all.iter().all(|seconds| is_possible(seconds * 1e9)) => {
            Some("one is negative or longer than 30 years")
        }
        _ => None,
    };
    if let Some(why) = wrong {
        return Err(ResultsError::Times { name: command, why });
    }
    let nanos = |seconds: f64| Nanos((seconds * 1e9).round() as u64);
    Ok(HyperfineTimes {
        command,
        name,
        times: seconds.into_iter().map(nanos).collect(),
        by_guard: jitterscope.is_some(),
    })
}

/// The commands of a file, each as a benchmark.
///
/// # Errors
/// As [`hyperfine_times`]; or a command has no name.
pub fn hyperfine(json: &[u8]) -> Result<Vec<Benchmark>, ResultsError> {
    let benchmark = |of: HyperfineTimes| {
        let mut sorted = of.times;
        sorted.sort_unstable();
        let at = |index: usize| sorted[index].0 as f64;
        let (n, last) = (sorted.len(), sorted.len() - 1);
        let times = Unchecked {
            median: f64::midpoint(at(last / 2), at(n / 2)),
            min: at(0),
            max: at(last),
            mean: sorted.iter().map(|time| time.0 as f64).sum::<f64>() / n as f64,
            samples: n as u64,
        };
        Benchmark::checked(of.name.unwrap_or(of.command), times)
    };
    let benchmarks: Result<Vec<_>, _> = hyperfine_times(json)?.into_iter().map(benchmark).collect();
    distinct(benchmarks?)
}
