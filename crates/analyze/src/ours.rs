//! The recorder's own threads, by id: any thread can have any name.

use jitterscope_model::{RunManifest, Subject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A thread of the recorder that made a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecorderThread {
    Measuring,
    /// Another thread of its process.
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
        let piped = manifest
            .threads
            .iter()
            .filter(|thread| thread.role.is_some())
            .map(|thread| thread.tid);
        Ours {
            process: manifest.recorder_pid,
            threads: measuring.chain(piped).collect(),
        }
    }

    #[cfg(test)]
    pub(crate) fn of_nobody() -> Ours {
        Ours {
            process: None,
            threads: BTreeSet::new(),
        }
    }

    /// The recorder's thread, if the subject is one.
    pub(crate) fn which(&self, subject: &Subject) -> Option<RecorderThread> {
        let Subject::Thread(task) = subject else {
            return None;
        };
        if task.tid.is_some_and(|tid| self.threads.contains(&tid)) {
            return Some(RecorderThread::Measuring);
        }
        let own = self.process.is_some() && task.tgid == self.process;
        own.then_some(RecorderThread::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::Task;

    #[test]
    fn threads_are_ours_by_their_ids_alone() {
        let thread = |tid, tgid| {
            Subject::Thread(Task {
                tid,
                tgid,
                comm: "js-spin/1".into(),
                ..Task::default()
            })
        };
        let known = Ours {
            process: Some(70),
            threads: BTreeSet::from([71]),
        };
        // Older runs do not say which threads recorded.
        let unknown = Ours {
            process: None,
            threads: BTreeSet::from([71]),
        };
        let (measuring, other) = (Some(RecorderThread::Measuring), Some(RecorderThread::Other));
        for (subject, with_process, without) in [
            (thread(Some(71), Some(70)), measuring, measuring),
            (thread(Some(71), None), measuring, measuring),
            (thread(Some(72), Some(70)), other, None),
            (thread(None, Some(70)), other, None),
            (thread(Some(72), Some(80)), None, None),
            (thread(None, None), None, None),
            (Subject::Softirq(3), None, None),
        ] {
            assert_eq!(
                [known.which(&subject), unknown.which(&subject)],
                [with_process, without],
                "{subject:?}"
            );
        }
    }
}
