//! The owner of watched CPUs, as the user named it, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The threads that belong on watched CPUs, as the user named them. In JSON it has its stable, hyphenated `id` beside
/// its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum NamedOwner {
    /// Threads of a process.
    Process { pid: i32 },
    /// Threads of control groups.
    Group {
        /// `unit:NAME`, `pod:UID` or `cgroup:/PATH`.
        group: String,
    },
    /// Threads with a name.
    Named { name: String },
}
