//! What `cargo bench` with criterion writes of a benchmark: `new/benchmark.json`, `new/estimates.json` and
//! `new/sample.json`, with times in nanoseconds.

use super::{Benchmark, BenchmarkTool, ResultsError, Unchecked, parsed};
use serde::Deserialize;

#[derive(Deserialize)]
struct Id {
    full_id: String,
}

#[derive(Deserialize)]
struct Estimates {
    mean: Estimate,
    median: Estimate,
}

#[derive(Deserialize)]
struct Estimate {
    point_estimate: f64,
}

#[derive(Deserialize)]
struct Sample {
    /// The number of calls in each sample.
    iters: Vec<f64>,
    /// The time of all these calls.
    times: Vec<f64>,
}

/// A benchmark from its three files.
///
/// # Errors
/// They are not such files, or its times are impossible.
pub fn criterion(id: &[u8], estimates: &[u8], sample: &[u8]) -> Result<Benchmark, ResultsError> {
    let tool = BenchmarkTool::Criterion;
    let Id { full_id } = parsed(tool, id)?;
    let Estimates { mean, median } = parsed(tool, estimates)?;
    let Sample { iters, times } = parsed(tool, sample)?;
    if iters.len() != times.len() || iters.iter().any(|calls| *calls <= 0.0) {
        return Err(ResultsError::Times {
            name: full_id,
            why: "each sample needs a number of calls and a time",
        });
    }
    let of_a_call = || times.iter().zip(&iters).map(|(time, calls)| time / calls);
    let times = Unchecked {
        median: median.point_estimate,
        min: of_a_call().fold(f64::INFINITY, f64::min),
        max: of_a_call().fold(0.0, f64::max),
        mean: mean.point_estimate,
        samples: iters.len() as u64,
    };
    Benchmark::checked(full_id, times)
}
