//! Our own threads, known by their ids: a name can be anybody's.

use jitterscope_model::{RunManifest, Subject};
use std::collections::BTreeSet;

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

    /// What a thread of ours is, in a phrase; `None` of all others.
    pub(crate) fn explain(&self, subject: &Subject) -> Option<&'static str> {
        let Subject::Thread(task) = subject else { return None };
        if task.tid.is_some_and(|tid| self.threads.contains(&tid)) {
            return Some("a measuring thread of this very recording");
        }
        let own = self.process.is_some() && task.tgid == self.process;
        own.then_some("jitterscope itself, which made this recording")
    }
}
