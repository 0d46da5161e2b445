//! Our own threads, known by their ids: a name can be anybody's.

use jitterscope_model::{RunManifest, Subject};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A thread of the recorder that made a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecorderThread {
    /// One that measured.
    Measuring,
    /// Another one of its process.
    Other,
}

/// The threads of the recorder that made a run.
pub(crate) struct Ours {
    process: Option<i32>,
    threads: BTreeSet<i32>,
}

impl Ours {
    pub(crate) fn of(manifest: &RunManifest) -> Ours {
        let measuring = manifest.results.iter().map(|result| result.tid);
        let piped = manifest.threads.iter().filter(|thread| thread.role.is_some()).map(|thread| thread.tid);
        Ours { process: manifest.recorder_pid, threads: measuring.chain(piped).collect() }
    }

    /// Nobody's are ours.
    #[cfg(test)]
    pub(crate) fn of_nobody() -> Ours {
        Ours { process: None, threads: BTreeSet::new() }
    }

    /// Which thread of ours it is; `None` of all others.
    pub(crate) fn which(&self, subject: &Subject) -> Option<RecorderThread> {
        let Subject::Thread(task) = subject else { return None };
        if task.tid.is_some_and(|tid| self.threads.contains(&tid)) {
            return Some(RecorderThread::Measuring);
        }
        let own = self.process.is_some() && task.tgid == self.process;
        own.then_some(RecorderThread::Other)
    }
}
