//! What `hyperfine --export-json` and `guard --export-json` write: times in seconds.

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
    mean: f64,
    median: f64,
    min: f64,
    max: f64,
    times: Vec<f64>,
    /// Only in files of `guard`.
    jitterscope: Option<IgnoredAny>,
}

/// The commands of a file, each as a benchmark.
///
/// # Errors
/// It is not such a file, or its times are impossible.
pub fn hyperfine(json: &[u8]) -> Result<Vec<Benchmark>, ResultsError> {
    let file: File = parsed(BenchmarkTool::Hyperfine, json)?;
    let benchmark = |entry: Entry| {
        let times = Unchecked {
            median: entry.median * 1e9,
            min: entry.min * 1e9,
            max: entry.max * 1e9,
            mean: entry.mean * 1e9,
            samples: entry.times.len() as u64,
        };
        Benchmark::checked(entry.command, times)
    };
    let benchmarks: Result<Vec<_>, _> = file.results.into_iter().map(benchmark).collect();
    distinct(benchmarks?)
}

/// The single times of a command in such a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HyperfineTimes {
    pub command: String,
    /// All times, in order; not empty.
    pub times: Vec<Nanos>,
    /// Whether `guard` measured them, and not hyperfine.
    pub by_guard: bool,
}

/// The single times of all commands of a file.
///
/// # Errors
/// It is not such a file, has no command, or its times are impossible.
pub fn hyperfine_times(json: &[u8]) -> Result<Vec<HyperfineTimes>, ResultsError> {
    let file: File = parsed(BenchmarkTool::Hyperfine, json)?;
    if file.results.is_empty() {
        return Err(ResultsError::Empty);
    }
    let of = |entry: Entry| {
        let wrong = |why| ResultsError::Times {
            name: entry.command.clone(),
            why,
        };
        if entry.times.is_empty() {
            return Err(wrong("there is no time"));
        }
        if !entry.times.iter().all(|seconds| is_possible(seconds * 1e9)) {
            return Err(wrong("one is negative or longer than 30 years"));
        }
        let nanos = |seconds: &f64| Nanos((seconds * 1e9).round() as u64);
        Ok(HyperfineTimes {
            times: entry.times.iter().map(nanos).collect(),
            command: entry.command,
            by_guard: entry.jitterscope.is_some(),
        })
    };
    file.results.into_iter().map(of).collect()
}
