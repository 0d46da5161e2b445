//! What became of the uploads of a watch's hours.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of the uploads so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UploadStatus {
    pub sent_hours: u64,
    pub sent_runs: u64,
    /// Bytes of their objects.
    pub sent_bytes: u64,
    /// Hours that are over and not sent.
    pub waiting_hours: u64,
    /// Files of hours that cannot be read; they stay where they are.
    pub unreadable_hours: u64,
    /// Hours that made room for newer ones before they were sent.
    pub dropped_hours: u64,
    /// Turns that ended with a problem.
    pub problems: u64,
    /// The problem of the last turn; null without one.
    pub problem: Option<UploadProblem>,
    /// By how many seconds this machine's clock is ahead of the store's; null as long as the store has not said so.
    pub clock_ahead_s: Option<i32>,
    /// When everything was sent last, seconds since the epoch.
    pub complete_s: Option<u64>,
}

/// Why a turn sent less than it should.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UploadProblem {
    /// `unreachable`, `credentials`, `forbidden`, `no_store`, `full`, `clock`, `unsupported`, `two_hosts`, `local` or
    /// `other`.
    pub kind: String,
    pub text: String,
}
