//! The design of a comparison.

use serde::Serialize;

/// How the runs of two arms are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Design {
    /// The n-th runs of both arms were made next to each other.
    Paired,
    /// The runs are independent.
    Unpaired,
}
