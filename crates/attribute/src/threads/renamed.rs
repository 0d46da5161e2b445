//! Threads that come by a name: by exec, by giving it to themselves, or because they had it all along.

use super::follower::{Following, ThreadFollower};
use super::state::{Start, State};
use jitterscope_model::{Comm, ExecutionContext, KernelEvent, TaskRef, ThreadRef, Ticks};

impl ThreadFollower {
    /// A thread has another name. One of a name that is followed begins with it, and runs, for only the thread
    /// itself calls exec.
    pub(super) fn renamed(&mut self, event: &KernelEvent, tid: i32, comm: Comm) {
        let by_itself = event.tid == tid && event.context == ExecutionContext::Thread;
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.id.comm = comm;
            return;
        }
        if tid == 0 || !self.settings.names.contains(&comm) {
            return;
        }
        self.follow_by_name(ThreadRef { tid, comm }, event.time);
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        thread.appeared = true;
        if by_itself {
            thread.state = State::Running {
                cpu: event.cpu,
                woken: None,
            };
            thread.cpu = Some(event.cpu);
        }
    }

    /// Follows a thread that has the name and was not known to: what it did under it before, nobody saw.
    pub(super) fn meet(&mut self, task: &TaskRef, at: Ticks) {
        if let Some(thread) = self.threads.get_mut(&task.tid) {
            // Threads rename themselves.
            thread.id.comm = task.comm;
        } else if task.tid != 0 && self.settings.names.contains(&task.comm) {
            self.met_late += u64::from(self.counts(at));
            self.follow_by_name(
                ThreadRef {
                    tid: task.tid,
                    comm: task.comm,
                },
                at,
            );
        }
    }

    /// A thread of the name leaves its CPU for good and was never met.
    pub(super) fn miss(&mut self, task: &TaskRef, at: Ticks) {
        let wanted = task.tid != 0 && self.settings.names.contains(&task.comm);
        if wanted && !self.threads.contains_key(&task.tid) {
            self.missed += u64::from(self.counts(at));
        }
    }

    /// Threads of a followed name that were first met by a switch or a wake-up while it was measured: the time
    /// before that is not in their accounts.
    #[must_use]
    pub fn met_late(&self) -> u64 {
        self.met_late
    }

    /// Threads of a followed name of which nothing was seen but their end.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed
    }

    fn follow_by_name(&mut self, thread: ThreadRef, at: Ticks) {
        self.follow(
            Following {
                thread,
                role: None,
                start: Start::Unknown,
            },
            at,
        );
    }
}
