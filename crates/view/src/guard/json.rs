//! The JSON of a series. New versions only add fields.

use super::words;
use crate::json::Worded;
use jitterscope_analyze::guard::results::BenchmarkSummary;
use jitterscope_analyze::guard::{
    BaselineChange, Contamination, Headline, Iteration, Series, Thief, Unsure,
};
use jitterscope_model::{Nanos, SCHEMA_VERSION};
use schemars::JsonSchema;
use serde::Serialize;

/// A series.
#[derive(Serialize, JsonSchema)]
struct SeriesWithWords<'a> {
    /// Version of this structure.
    schema_version: u32,
    #[serde(flatten)]
    series: &'a Series,
    /// The outcome of the whole series.
    outcome: Contamination,
    headline: Headline,
    /// The change from the stored times; null if none were named.
    baseline: Option<BaselineChange>,
    /// The benchmarks of the tool within the command, over all iterations; empty if none was named.
    benchmarks: Vec<BenchmarkSummary>,
    iterations: Vec<IterationWithWords<'a>>,
}

/// An iteration, also within the file for hyperfine.
#[derive(Serialize, JsonSchema)]
pub(super) struct IterationWithWords<'a> {
    /// Its number, from 1.
    iteration: usize,
    #[serde(flatten)]
    of: &'a Iteration,
    /// The time that others took.
    lost_ns: Nanos,
    /// Its share of the time in which the command's threads wanted a CPU.
    lost_fraction: f64,
    /// Why the evidence is incomplete; empty if it is complete.
    unsure: Vec<Worded<'a, Unsure, UnsureWords>>,
    /// Who took most; null if nobody took anything or the evidence does not show it. The run has everything about
    /// everybody.
    culprit: Option<&'a Thief>,
}

#[derive(Serialize, JsonSchema)]
struct UnsureWords {
    /// The reason in words.
    text: String,
}

/// All iterations.
pub(super) fn iterations(series: &Series) -> Vec<IterationWithWords<'_>> {
    let of_each = series.iterations.iter().enumerate();
    of_each.map(|(at, one)| iteration(at, one)).collect()
}

fn iteration(at: usize, of: &Iteration) -> IterationWithWords<'_> {
    let thief = of.stolen.thief.as_ref();
    IterationWithWords {
        iteration: at + 1,
        of,
        lost_ns: of.stolen.lost(),
        lost_fraction: of.stolen.share(),
        unsure: of.unsure.iter().map(unsure).collect(),
        culprit: thief.filter(|_| !words::withheld(of)),
    }
}

fn unsure(fact: &Unsure) -> Worded<'_, Unsure, UnsureWords> {
    let text = words::unsure(fact);
    Worded {
        fact,
        words: UnsureWords { text },
    }
}

/// The series for programs.
#[must_use]
pub fn json(series: &Series) -> impl Serialize + JsonSchema {
    SeriesWithWords {
        schema_version: SCHEMA_VERSION,
        series,
        outcome: series.outcome(),
        headline: series.headline(),
        baseline: series.change(),
        benchmarks: series.benchmarks(),
        iterations: iterations(series),
    }
}
