//! The value that decides a condition, as data.

use crate::WorstCase;
use crate::compare::{Comparison, FigureKind, FigureUnit, Interval, Scale};
use jitterscope_model::Nanos;

/// The value of a condition's quantity.
#[derive(Clone, Debug, PartialEq)]
pub enum GateValue {
    /// A length of time.
    Time(Nanos),
    /// The longest, with its exposure.
    Longest(WorstCase),
    /// A share of a whole.
    Share(f64),
    /// A rate per second.
    PerSec(f64),
    /// The change that decides a condition about changes.
    Change(SeenChange),
    /// Nothing that the condition is about was seen on either side.
    NoChange,
}

/// A change of the second side against the first.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenChange {
    pub of: Changed,
    pub unit: FigureUnit,
    pub scale: Scale,
    /// In the unit of `scale`; `None` if not every run has the figure.
    pub by: Option<f64>,
    pub interval: Option<Interval>,
    /// The probability that chance alone does this.
    pub probability: Option<f64>,
    /// The upper end of the interval that must lie within the margin for the second side not to be worse.
    pub at_most: Option<f64>,
    pub margin: f64,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    Figure(FigureKind),
    /// The stolen share or the events of a culprit, by its kind and name.
    Culprit(String),
}

impl SeenChange {
    pub(super) fn new(of: Changed, unit: FigureUnit, comparison: &Comparison) -> SeenChange {
        SeenChange {
            of,
            unit,
            scale: comparison.scale,
            by: comparison.change,
            interval: comparison.interval,
            probability: comparison.probability,
            at_most: comparison
                .equivalence_interval
                .map(|interval| interval.high),
            margin: comparison.margin,
        }
    }
}
