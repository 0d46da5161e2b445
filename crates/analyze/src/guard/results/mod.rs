//! What a benchmark tool that runs under `guard` reports of each of its benchmarks, from the files that it writes.
//!
//! These files are foreign: each field is checked, and nothing in them is believed to be possible.

mod criterion;
mod hyperfine;
mod pytest;
mod summary;
#[cfg(test)]
mod tests;

pub use criterion::criterion;
pub use hyperfine::{HyperfineTimes, hyperfine, hyperfine_times};
pub use pytest::pytest_benchmark;
pub use summary::BenchmarkSummary;

use crate::FineNanos;
use jitterscope_model::visible;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// The largest number of benchmarks of one iteration.
pub const MOST_BENCHMARKS: usize = 10_000;
/// The longest time that is believed: 30 years, in nanoseconds.
const LONGEST_NS: f64 = 1e18;

/// A tool that runs benchmarks and writes their times to files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BenchmarkTool {
    Hyperfine,
    Criterion,
    PytestBenchmark,
}

impl BenchmarkTool {
    pub const ALL: [BenchmarkTool; 3] = [
        BenchmarkTool::Hyperfine,
        BenchmarkTool::Criterion,
        BenchmarkTool::PytestBenchmark,
    ];

    /// Its name, as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            BenchmarkTool::Hyperfine => "hyperfine",
            BenchmarkTool::Criterion => "criterion",
            BenchmarkTool::PytestBenchmark => "pytest-benchmark",
        }
    }
}

/// Why a tool's file is of no use.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    #[error("it is not JSON as {tool} writes it: {error}")]
    Form {
        tool: &'static str,
        error: serde_json::Error,
    },
    #[error("it has no benchmark")]
    Empty,
    #[error("it has more than {MOST_BENCHMARKS} benchmarks")]
    TooMany,
    #[error("a benchmark has no name")]
    Nameless,
    #[error("the times of '{}' are impossible: {why}", visible(name))]
    Times { name: String, why: &'static str },
}

/// The times of one benchmark in one iteration of COMMAND, as its own tool measured them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Benchmark {
    /// Its full name there; a number follows names that occur twice.
    pub name: String,
    /// The median of the samples.
    #[serde(rename = "median_ns")]
    pub median: FineNanos,
    /// The least sample.
    #[serde(rename = "min_ns")]
    pub min: FineNanos,
    /// The largest sample.
    #[serde(rename = "max_ns")]
    pub max: FineNanos,
    /// The mean of the samples.
    #[serde(rename = "mean_ns")]
    pub mean: FineNanos,
    /// The number of samples; of criterion and pytest-benchmark, a sample is the mean of many calls.
    pub samples: u64,
}

/// Times in nanoseconds, not yet checked.
struct Unchecked {
    median: f64,
    min: f64,
    max: f64,
    mean: f64,
    samples: u64,
}

impl Benchmark {
    fn checked(name: String, times: Unchecked) -> Result<Benchmark, ResultsError> {
        let Unchecked {
            median,
            min,
            max,
            mean,
            samples,
        } = times;
        if name.is_empty() {
            return Err(ResultsError::Nameless);
        }
        let wrong = |why| ResultsError::Times {
            name: name.clone(),
            why,
        };
        if samples == 0 {
            return Err(wrong("there is no sample"));
        }
        if ![median, min, max, mean].iter().all(|ns| is_possible(*ns)) {
            return Err(wrong("one is negative or longer than 30 years"));
        }
        // Sums of floating-point numbers may be off in the last digit.
        let at_most = |less: f64, more: f64| less <= more * (1.0 + 1e-9);
        if !(at_most(min, median)
            && at_most(median, max)
            && at_most(min, mean)
            && at_most(mean, max))
        {
            return Err(wrong("median or mean is not between least and largest"));
        }
        let [median, min, max, mean] = [median, min, max, mean].map(FineNanos::from_nanos);
        Ok(Benchmark {
            name,
            median,
            min,
            max,
            mean,
            samples,
        })
    }
}

/// Whether a time in nanoseconds is finite, not negative, and not absurdly long.
fn is_possible(ns: f64) -> bool {
    (0.0..=LONGEST_NS).contains(&ns)
}

/// A tool's file, or a part of it.
fn parsed<T: DeserializeOwned>(tool: BenchmarkTool, json: &[u8]) -> Result<T, ResultsError> {
    serde_json::from_slice(json).map_err(|error| ResultsError::Form {
        tool: tool.as_str(),
        error,
    })
}

/// Benchmarks of one iteration, with names that occur once.
///
/// # Errors
/// There is none, or there are very many.
pub fn distinct(mut benchmarks: Vec<Benchmark>) -> Result<Vec<Benchmark>, ResultsError> {
    if benchmarks.is_empty() {
        return Err(ResultsError::Empty);
    }
    if benchmarks.len() > MOST_BENCHMARKS {
        return Err(ResultsError::TooMany);
    }
    let mut taken: BTreeMap<String, u32> = BTreeMap::new();
    for one in &mut benchmarks {
        let mut name = one.name.clone();
        while let Some(times) = taken.get_mut(&name) {
            *times += 1;
            name = format!("{} ({times})", one.name);
            if !taken.contains_key(&name) {
                break;
            }
            name.clone_from(&one.name);
        }
        taken.insert(name.clone(), 1);
        one.name = name;
    }
    Ok(benchmarks)
}
