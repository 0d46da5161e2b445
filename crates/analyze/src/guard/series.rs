//! All iterations of a guarded command.

use super::baseline::{Baseline, BaselineChange};
use super::iteration::{Contamination, Iteration};
use super::results::{BenchmarkSummary, BenchmarkTool};
use jitterscope_model::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

/// The iterations of a command, in order.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Series {
    /// The command and its arguments.
    pub command: Vec<String>,
    /// The label of its runs.
    pub label: String,
    /// The requested number of iterations, without additional ones.
    pub planned: usize,
    /// The largest number of additional iterations.
    pub retry: usize,
    /// The largest share of the wanted time that others may take.
    #[serde(rename = "contaminated_above_fraction")]
    pub limit: f64,
    /// The tool within the command that measures benchmarks; null if none was named.
    pub tool: Option<BenchmarkTool>,
    /// The stored times to compare with. In JSON, view adds the comparison.
    #[serde(skip)]
    pub baseline: Option<Baseline>,
    /// In JSON, view adds them with their words.
    #[serde(skip)]
    pub iterations: Vec<Iteration>,
    /// Whether the user ended it early.
    pub interrupted: bool,
}

/// The times of all iterations that ran to their end, and how many were disturbed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Headline {
    /// The number of times.
    pub counted: usize,
    /// The middle time, or the mean of the two middle ones; `None` without a time, like the following.
    #[serde(rename = "median_ns")]
    pub median: Option<Nanos>,
    #[serde(rename = "min_ns")]
    pub min: Option<Nanos>,
    #[serde(rename = "max_ns")]
    pub max: Option<Nanos>,
    #[serde(rename = "mean_ns")]
    pub mean: Option<Nanos>,
    /// Standard deviation of the sample; `None` for fewer than two times.
    #[serde(rename = "stddev_ns")]
    pub deviation: Option<Nanos>,
    /// Clean iterations, additional ones included.
    pub clean: usize,
    /// Contaminated iterations, additional ones included.
    pub contaminated: usize,
    /// Iterations of which it is unknown, additional ones included.
    pub unknown: usize,
    /// Iterations made in place of contaminated ones.
    pub additional: usize,
    /// Contaminated iterations, without additional ones, in place of which no clean one was made.
    pub remaining: usize,
}

impl Series {
    /// The times of the iterations that ran to their end.
    #[must_use]
    pub fn times(&self) -> Vec<Nanos> {
        let whole = self.iterations.iter().filter(|one| one.is_whole());
        whole.map(|one| one.time).collect()
    }

    /// The benchmarks of the tool within the command, over all iterations.
    #[must_use]
    pub fn benchmarks(&self) -> Vec<BenchmarkSummary> {
        BenchmarkSummary::of(&self.iterations)
    }

    /// The change from the stored times to these; `None` without stored times.
    #[must_use]
    pub fn change(&self) -> Option<BaselineChange> {
        let baseline = self.baseline.as_ref()?;
        Some(baseline.change_to(&self.times()))
    }

    /// Sums up all iterations. Nothing is subtracted, and none is dropped because it was contaminated.
    #[must_use]
    pub fn headline(&self) -> Headline {
        let mut times = self.times();
        times.sort_unstable();
        let of = |kind: Contamination| {
            let alike = self
                .iterations
                .iter()
                .filter(|one| one.contamination == kind);
            alike.count()
        };
        let (additional, planned): (Vec<_>, Vec<_>) =
            self.iterations.iter().partition(|one| one.made.additional);
        let among = |iterations: &[&Iteration], kind| {
            let alike = iterations.iter().filter(|one| one.contamination == kind);
            alike.count()
        };
        let replaced = among(&additional, Contamination::Clean);
        let (mean, deviation) = mean_and_deviation(&times);
        Headline {
            counted: times.len(),
            median: median(&times),
            min: times.first().copied(),
            max: times.last().copied(),
            mean,
            deviation,
            clean: of(Contamination::Clean),
            contaminated: of(Contamination::Contaminated),
            unknown: of(Contamination::Unknown),
            additional: additional.len(),
            remaining: among(&planned, Contamination::Contaminated).saturating_sub(replaced),
        }
    }

    /// Whether another iteration is to be made, and whether as an additional one; `None` if all are made.
    #[must_use]
    pub fn next(&self) -> Option<bool> {
        let headline = self.headline();
        let ended = self.interrupted
            || self
                .iterations
                .last()
                .is_some_and(|last| last.failed() || !last.is_whole());
        let made = self.iterations.len() - headline.additional;
        match (ended, made < self.planned) {
            (true, _) => None,
            (false, true) => Some(false),
            (false, false) => {
                (headline.remaining > 0 && headline.additional < self.retry).then_some(true)
            }
        }
    }

    /// The outcome of the whole series: contaminated if a contaminated iteration remains, unknown if nothing shows that
    /// all are clean.
    #[must_use]
    pub fn outcome(&self) -> Contamination {
        let planned = || self.iterations.iter().filter(|one| !one.made.additional);
        let is_unknown = |one: &Iteration| one.contamination == Contamination::Unknown;
        if self.headline().remaining > 0 {
            Contamination::Contaminated
        } else if planned().any(is_unknown) || planned().count() < self.planned {
            Contamination::Unknown
        } else {
            Contamination::Clean
        }
    }

    /// The contaminated iteration that lost the largest share to others; without one, the unknown one.
    #[must_use]
    pub fn worst(&self) -> Option<&Iteration> {
        let certain = |one: &Iteration| one.contamination == Contamination::Contaminated;
        let disturbed = self.iterations.iter();
        let disturbed = disturbed.filter(|one| one.contamination != Contamination::Clean);
        disturbed.max_by(|a, b| {
            let share = || a.stolen.share().total_cmp(&b.stolen.share());
            certain(a).cmp(&certain(b)).then_with(share)
        })
    }
}

/// The median of sorted times.
pub(super) fn median(times: &[Nanos]) -> Option<Nanos> {
    let upper = *times.get(times.len() / 2)?;
    if times.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = times.get(times.len() / 2 - 1)?.0;
    Some(Nanos(lower + (upper.0 - lower) / 2))
}

fn mean_and_deviation(times: &[Nanos]) -> (Option<Nanos>, Option<Nanos>) {
    let n = times.len() as f64;
    if times.is_empty() {
        return (None, None);
    }
    let mean = times.iter().map(|time| time.0 as f64).sum::<f64>() / n;
    let squares: f64 = times
        .iter()
        .map(|time| (time.0 as f64 - mean).powi(2))
        .sum();
    let deviation = (times.len() > 1).then(|| Nanos((squares / (n - 1.0)).sqrt().round() as u64));
    (Some(Nanos(mean.round() as u64)), deviation)
}
