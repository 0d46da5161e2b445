//! The value that decides a condition, as data.

use jitterscope_model::Nanos;

/// The value of a condition's quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GateValue {
    /// A length of time.
    Time(Nanos),
    /// A share of a whole.
    Share(f64),
    /// A rate per second.
    PerSec(f64),
    /// Whether something became worse.
    BecameWorse(bool),
}
