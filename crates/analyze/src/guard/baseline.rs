//! Stored times of a command, and the change from them to those of a series.

use super::results::HyperfineTimes;
use super::series::median;
use crate::compare::{Effect, Interval, Scale};
use jitterscope_model::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

/// The level of the interval of a change.
const LEVEL: f64 = 0.95;

/// Times of a command from a file in hyperfine's format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline(pub HyperfineTimes);

/// The change from stored times to those of a series; both sides count all their times.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BaselineChange {
    /// The command of the stored times.
    pub command: String,
    /// Whether `guard` measured them; if hyperfine did, the change contains the cost of following.
    pub by_guard: bool,
    /// The number of stored times.
    pub counted: usize,
    /// Their median.
    #[serde(rename = "median_ns")]
    pub median: Option<Nanos>,
    /// The change of the geometric mean, as a share of the stored one: 0.1 is a tenth longer. Null if a side has fewer
    /// than two times, or a time of zero.
    pub change_fraction: Option<f64>,
    /// Its interval, by Welch's t on logarithms.
    pub change: Option<Interval>,
}

impl Baseline {
    pub(super) fn change_to(&self, times: &[Nanos]) -> BaselineChange {
        let HyperfineTimes {
            command,
            times: stored,
            by_guard,
            ..
        } = &self.0;
        let figures = |times: &[Nanos]| times.iter().map(|t| t.0 as f64).collect::<Vec<f64>>();
        let effect = Effect::unpaired(&figures(stored), &figures(times))
            .filter(|effect| effect.scale == Scale::Ratio);
        let mut sorted = stored.clone();
        sorted.sort_unstable();
        BaselineChange {
            command: command.clone(),
            by_guard: *by_guard,
            counted: stored.len(),
            median: median(&sorted),
            change_fraction: effect.map(|effect| effect.scale.change(effect.distance)),
            change: effect.map(|effect| effect.change_interval(LEVEL)),
        }
    }
}
