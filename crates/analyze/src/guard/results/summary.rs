//! The benchmarks of all iterations.

use super::super::iteration::{Contamination, Iteration};
use crate::FineNanos;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;

/// A benchmark in all iterations in which it ran. No iteration is dropped because it was contaminated.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BenchmarkSummary {
    /// Its full name.
    pub name: String,
    /// The number of iterations in which it ran.
    pub iterations: usize,
    /// How many of them were contaminated, at any time, not only while this benchmark ran.
    pub contaminated: usize,
    /// Of how many of them it is unknown.
    pub unknown: usize,
    /// The median of its medians.
    #[serde(rename = "median_ns")]
    pub median: FineNanos,
    /// The least sample of all iterations.
    #[serde(rename = "min_ns")]
    pub min: FineNanos,
    /// The largest sample of all iterations.
    #[serde(rename = "max_ns")]
    pub max: FineNanos,
    /// The median of its medians in clean iterations alone; `None` without any.
    #[serde(rename = "clean_median_ns")]
    pub clean_median: Option<FineNanos>,
}

impl BenchmarkSummary {
    /// All benchmarks of these iterations, in the order in which they first ran.
    pub(crate) fn of(iterations: &[Iteration]) -> Vec<BenchmarkSummary> {
        let mut order = Vec::new();
        let mut runs: HashMap<&str, Vec<(Contamination, &super::Benchmark)>> = HashMap::new();
        for iteration in iterations {
            for benchmark in &iteration.benchmarks {
                let runs = runs.entry(&benchmark.name).or_insert_with(|| {
                    order.push(benchmark.name.as_str());
                    Vec::new()
                });
                runs.push((iteration.contamination, benchmark));
            }
        }
        let summary = |name: &str| BenchmarkSummary::of_runs(name, &runs[name]);
        order.into_iter().filter_map(summary).collect()
    }

    fn of_runs(
        name: &str,
        runs: &[(Contamination, &super::Benchmark)],
    ) -> Option<BenchmarkSummary> {
        let count = |kind| runs.iter().filter(|(of, _)| *of == kind).count();
        let clean = runs.iter().filter(|(of, _)| *of == Contamination::Clean);
        Some(BenchmarkSummary {
            name: name.to_owned(),
            iterations: runs.len(),
            contaminated: count(Contamination::Contaminated),
            unknown: count(Contamination::Unknown),
            median: median(runs.iter().map(|(_, one)| one.median.0))?,
            min: FineNanos(runs.iter().map(|(_, one)| one.min.0).reduce(f64::min)?),
            max: FineNanos(runs.iter().map(|(_, one)| one.max.0).reduce(f64::max)?),
            clean_median: median(clean.map(|(_, one)| one.median.0)),
        })
    }
}

fn median(of: impl Iterator<Item = f64>) -> Option<FineNanos> {
    crate::machine::median(of.collect()).map(FineNanos::from_nanos)
}
