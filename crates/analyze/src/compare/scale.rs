//! The scale on which two arms are compared.

use schemars::JsonSchema;
use serde::Serialize;

/// The unit of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Logarithms of ratios: figures of different runs vary by factors, and a setting changes a factor. Needs figures
    /// above zero.
    Ratio,
    /// Differences in the figure's own unit, for figures that are zero in some run.
    Difference,
}

impl Scale {
    /// The scale for these figures.
    #[must_use]
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Scale {
        if figures.into_iter().all(|figure| figure > 0.0) {
            Scale::Ratio
        } else {
            Scale::Difference
        }
    }

    /// A figure on this scale.
    #[must_use]
    pub fn position(self, figure: f64) -> f64 {
        match self {
            Scale::Ratio => figure.ln(),
            Scale::Difference => figure,
        }
    }

    /// A distance on this scale as a reported change: a share of the first arm (0.1: a tenth more), or the difference
    /// itself.
    #[must_use]
    pub fn change(self, distance: f64) -> f64 {
        match self {
            Scale::Ratio => distance.exp_m1(),
            Scale::Difference => distance,
        }
    }
}
