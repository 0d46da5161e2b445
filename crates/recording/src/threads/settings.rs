//! Resolved settings of an attachment.

use crate::settings::RunSettings;
use jitterscope_model::Nanos;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followed {
    /// All threads of a process.
    Process(i32),
    Thread(i32),
    /// Every thread with this name, including those that begin later.
    Named {
        name: String,
        /// Only this user's threads, because any thread may take a name.
        user: Option<u32>,
    },
    /// All threads of a command started for this, and of the processes that it creates.
    Command {
        line: Vec<String>,
        /// Environment variables in addition to ours.
        env: Vec<(String, String)>,
        /// Whether its standard output goes to standard error, because ours carries the result.
        to_stderr: bool,
    },
}

#[derive(Clone, Debug)]
pub struct AttachSettings {
    /// The settings of every kind of recording.
    pub run: RunSettings,
    pub followed: Followed,
    /// Whether child processes of a followed process are followed, too.
    pub children: bool,
    /// Limit on followed threads; `None`: the default of the target's kind.
    pub most_threads: Option<usize>,
    /// Whether to wait for a thread of the name if there is none yet.
    pub wait: bool,
    /// The duration; `None`: until the threads have ended.
    pub duration: Option<Nanos>,
    /// Whether to record the stacks of followed threads that go to sleep, which show what they wait for.
    pub stacks: bool,
    /// Waits and interruptions at or above this are stalls.
    pub threshold: Nanos,
}
