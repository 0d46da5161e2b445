//! Why the target of a change is gone, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why it is gone. In JSON it has its stable `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum GoneBecause {
    /// The thread ended before it could be moved.
    EndedUnmoved,
    ThreadEnded,
    /// The file is no longer there.
    NoFile {
        path: String,
    },
    /// The file cannot be read.
    Unreadable {
        path: String,
        system: String,
    },
}
