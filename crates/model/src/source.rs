//! What could be seen, and what could not.

use serde::{Deserialize, Serialize};

/// How much of a source there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceStatus {
    /// All of it.
    Available,
    /// Some of it: `reason` says what is missing.
    Degraded,
    /// It is there, but not for this user.
    Denied,
    /// This machine has no such thing.
    Absent,
}

impl SourceStatus {
    /// Its name in JSON and on screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            SourceStatus::Available => "available",
            SourceStatus::Degraded => "degraded",
            SourceStatus::Denied => "denied",
            SourceStatus::Absent => "absent",
        }
    }
}

/// One source of evidence: what there is of it, what its absence costs, how to get it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceReport {
    /// Short stable name, as `--require` takes it: `tracefs`, `senders`, `smi`, ...
    pub name: String,
    /// What there is.
    pub status: SourceStatus,
    /// Why it is so, in one sentence; empty when available.
    pub reason: String,
    /// What cannot be seen because of it; empty when available.
    pub loses: String,
    /// The narrowest way to get it; empty when there is none or none is needed.
    pub fix: String,
    /// Records known to be lost during the run.
    pub lost: u64,
}
