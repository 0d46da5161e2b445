//! The moment around which `watch` saved a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who asked for a moment to be saved. A word of a newer version is read as `Unknown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AskedBy {
    /// A condition of `--save-if` was met.
    Condition,
    /// A line on the socket of `--socket`.
    Application,
    /// SIGUSR1.
    Signal,
    /// A write to the `trace_marker` of the recorder's tracing instance.
    Marker,
    /// `watch save`.
    Person,
    #[serde(other)]
    Unknown,
}

/// Why `watch` saved a run, and when that was asked for. Of the measurement it is a part: what only the recorder knows
/// of the whole is missing, see `Warning::SavedPart`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SavedMoment {
    /// The moment, nanoseconds since the epoch.
    pub realtime_ns: u64,
    pub by: AskedBy,
    /// The condition with its value, or the application's words; may be empty.
    pub text: String,
    /// Further requests that came before the run was written, and were not saved on their own.
    pub joined: u64,
}
