//! What is attached to, resolved from what the user asked for.

use crate::settings::RunSettings;
use jitterscope_model::Nanos;

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
    /// What every kind of recording is asked.
    pub run: RunSettings,
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
}
