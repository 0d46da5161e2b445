//! How runs are set against one another.

use serde::Serialize;

/// How the runs of two arms belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Design {
    /// The n-th run of one arm was made next to the n-th of the other.
    Paired,
    /// Each run stands for itself.
    Unpaired,
}
