//! Who was named as the one that watched CPUs belong to, as data.

use serde::{Deserialize, Serialize};

/// Whose threads belong on watched CPUs, as the user named them. In JSON it has its stable, hyphenated `id` beside its
/// fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum NamedOwner {
    /// The threads of a process.
    Process {
        /// Its id.
        pid: i32,
    },
    /// Threads of a name.
    Named {
        /// The name.
        name: String,
    },
}
