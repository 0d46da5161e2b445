//! What could be seen, and what could not.

use crate::words::open_words;
use serde::{Deserialize, Serialize};

open_words! {
    /// How much of a source there is.
    SourceStatus {
        /// All of it.
        Available = "available",
        /// Some of it: `reason` says what is missing.
        Degraded = "degraded",
        /// It is there, but not for this user.
        Denied = "denied",
        /// This machine has no such thing.
        Absent = "absent",
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
