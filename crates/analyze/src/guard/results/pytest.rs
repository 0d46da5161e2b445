//! What `pytest --benchmark-json` of pytest-benchmark writes: times in seconds.

use super::{Benchmark, BenchmarkTool, ResultsError, Unchecked, distinct, parsed};
use serde::Deserialize;

#[derive(Deserialize)]
struct File {
    benchmarks: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    fullname: String,
    stats: Stats,
}

#[derive(Deserialize)]
struct Stats {
    min: f64,
    max: f64,
    mean: f64,
    median: f64,
    rounds: u64,
}

/// The benchmarks of a file.
///
/// # Errors
/// It is not such a file, or its times are impossible.
pub fn pytest_benchmark(json: &[u8]) -> Result<Vec<Benchmark>, ResultsError> {
    let file: File = parsed(BenchmarkTool::PytestBenchmark, json)?;
    let benchmark = |entry: Entry| {
        let Stats {
            min,
            max,
            mean,
            median,
            rounds,
        } = entry.stats;
        let times = Unchecked {
            median: median * 1e9,
            min: min * 1e9,
            max: max * 1e9,
            mean: mean * 1e9,
            samples: rounds,
        };
        Benchmark::checked(entry.fullname, times)
    };
    let benchmarks: Result<Vec<_>, _> = file.benchmarks.into_iter().map(benchmark).collect();
    distinct(benchmarks?)
}
