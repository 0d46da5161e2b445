//! Marks: what an application's own log says about the time of a run.

use crate::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a log is written. A word of a newer version is read as `Unknown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MarkForm {
    /// The JVM's unified log: pauses of the collector, and safepoints.
    Jvm,
    /// A table with a line of column names.
    Csv,
    /// Lines that begin with their time.
    Log,
    #[default]
    #[serde(other)]
    Unknown,
}

/// What a run keeps of one log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkLog {
    /// The name of its file, without folders.
    pub file: String,
    pub form: MarkForm,
    /// Marks that lie outside of the run's time.
    pub outside: u64,
    /// Lines whose time could not be read.
    pub unread: u64,
    /// Marks within the run's time beyond [`MarkLog::MOST`]: the shortest ones, which are not kept.
    pub beyond: u64,
    /// In order of their start.
    pub marks: Vec<AppMark>,
}

impl MarkLog {
    /// The marks that are kept of a log.
    pub const MOST: usize = 20_000;
}

/// A collector's pause, a slow request, a line of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppMark {
    /// Marks of one name are summed.
    pub name: String,
    /// Nanoseconds since the epoch.
    pub start_realtime_ns: u64,
    /// 0 if the log names a moment.
    pub length_ns: Nanos,
}

impl AppMark {
    /// Its end, nanoseconds since the epoch.
    #[must_use]
    pub fn end_realtime_ns(&self) -> u64 {
        self.start_realtime_ns.saturating_add(self.length_ns.0)
    }
}
