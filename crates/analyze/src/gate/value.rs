//! What a condition is decided by, as data.

use jitterscope_model::Nanos;

/// What was found of the quantity of a condition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GateValue {
    /// A length of time.
    Time(Nanos),
    /// A share of something.
    Share(f64),
    /// Times a second.
    PerSec(f64),
    /// Whether something became worse.
    BecameWorse(bool),
}
