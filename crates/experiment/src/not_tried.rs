//! Why a knob that is advised is not tried, as data.

use serde::{Deserialize, Serialize};

/// Why it is not tried. In JSON it has its stable `id` beside its fields. How long its undoing takes stands in the
/// knob's declaration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum NotTried {
    /// Its undoing takes longer than is waited for, or no time limits it.
    UndoneTooLate,
    /// It does not, and the budget leaves no time for it.
    NoTimeLeft,
}
