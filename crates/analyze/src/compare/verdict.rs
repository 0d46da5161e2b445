//! The verdict of a comparison, and why there is none.

use schemars::JsonSchema;
use serde::Serialize;

/// The verdict on the second arm against the first. Lower figures are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Less was lost, and not by chance.
    Better,
    /// More was lost, and not by chance.
    Worse,
    /// The difference is below the margin.
    Equivalent,
    Inconclusive,
    /// Neither arm saw it.
    NotSeen,
}

/// Why a comparison is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "because")]
pub enum Undecided {
    /// A single run in each arm shows no run-to-run variation.
    SingleRuns,
    /// The arms alternate too rarely: a drift of the machine would look like an effect of the setting.
    OneAfterTheOther,
    /// The test cannot reach significance with so few runs.
    TooFewRuns {
        /// The fewest runs in each arm that could.
        fewest: usize,
    },
    /// The difference may be chance, and may exceed the margin.
    Chance,
    /// Not every run has the figure.
    NotMeasured,
}
