//! Threads that are followed because of their name, which they got by exec, by renaming, or had from the beginning.

use super::follower::{Following, ThreadFollower};
use super::state::{Start, State};
use crate::name_resolver::NameResolver;
use jitterscope_model::{Comm, ExecutionContext, KernelEvent, TaskRef, ThreadRef, Ticks};

impl ThreadFollower {
    /// A thread is renamed. If it gets a followed name, following begins now. If it renamed itself, as exec does, it is
    /// running.
    pub(super) fn renamed(
        &mut self,
        event: &KernelEvent,
        tid: i32,
        comm: Comm,
        resolver: &dyn NameResolver,
    ) {
        let by_itself = event.tid == tid && event.context == ExecutionContext::Thread;
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.id.comm = comm;
            return;
        }
        if !self.is_meant(tid, comm, resolver) {
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

    /// Follows a thread with the name that was not known before: its earlier activity under that name was not seen.
    pub(super) fn meet(&mut self, task: &TaskRef, at: Ticks, resolver: &dyn NameResolver) {
        if let Some(thread) = self.threads.get_mut(&task.tid) {
            // Threads can be renamed.
            thread.id.comm = task.comm;
        } else if self.is_meant(task.tid, task.comm, resolver) {
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

    /// A thread with the name ends without having been seen before.
    pub(super) fn miss(&mut self, task: &TaskRef, at: Ticks, resolver: &dyn NameResolver) {
        if self.is_meant(task.tid, task.comm, resolver) && !self.threads.contains_key(&task.tid) {
            self.missed += u64::from(self.counts(at));
        }
    }

    /// Whether a thread has a followed name, and belongs to the right user.
    pub(super) fn is_meant(&self, tid: i32, comm: Comm, resolver: &dyn NameResolver) -> bool {
        let of_user = |user| {
            let owner = resolver.identity(tid, comm).owner;
            owner.is_some_and(|owner| owner.uid == Some(user))
        };
        tid != 0 && self.settings.names.contains(&comm) && self.settings.user.is_none_or(of_user)
    }

    /// Threads with a followed name that first appeared in a switch or a wake-up during the measurement: their accounts
    /// do not include earlier time.
    #[must_use]
    pub fn met_late(&self) -> u64 {
        self.met_late
    }

    /// Threads with a followed name that were only seen to end.
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
