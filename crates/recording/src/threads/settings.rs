//! What is attached to, resolved from what the user asked for.

use jitterscope_model::{ClockKind, Nanos, TuningState};
use std::path::PathBuf;

/// Whose threads are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followed {
    /// All threads of a process.
    Process(i32),
    /// One thread.
    Thread(i32),
    /// Every thread of this name, also those that begin later.
    Named(String),
    /// All threads of a command that is started for it, and of the processes that it makes.
    Command {
        /// Program and arguments.
        line: Vec<String>,
        /// What its environment has beside that of ours.
        env: Vec<(String, String)>,
        /// Whether its standard output goes to standard error, because ours is the result.
        to_stderr: bool,
    },
}

/// Settings of one attachment.
#[derive(Clone, Debug)]
pub struct AttachSettings {
    /// Whose threads.
    pub followed: Followed,
    /// Whether the processes that a followed process makes are followed, too.
    pub children: bool,
    /// Whether to wait for a thread of the name when there is none yet.
    pub wait: bool,
    /// How long; `None` until the threads have ended.
    pub duration: Option<Nanos>,
    /// Waits and interruptions at or above this are stalls.
    pub threshold: Nanos,
    /// The clock, when the user insists on one.
    pub clock: Option<ClockKind>,
    /// Size of each CPU's trace buffer, KiB.
    pub trace_buffer_kib: u32,
    /// Raw trace kept with the run at most, bytes.
    pub trace_limit_bytes: u64,
    /// The knobs of the machine as the audit found them, and what was applied; `None` when nobody looked.
    pub tuning: Option<TuningState>,
    /// The user's name for the configuration.
    pub label: String,
    /// Where runs are kept.
    pub runs_dir: PathBuf,
    /// The command line, for the manifest.
    pub command_line: Vec<String>,
}
