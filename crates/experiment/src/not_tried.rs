//! Why an advised knob is not tried, as data.

use serde::{Deserialize, Serialize};

/// Why a knob is not tried. In JSON it has its stable `id` beside its fields. The knob's declaration says how long its
/// undoing takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum NotTried {
    /// Its undoing takes longer than the longest wait, or has no limit.
    UndoneTooLate,
    /// Its undoing is fast enough, but the time limit leaves no time for it.
    NoTimeLeft,
}
