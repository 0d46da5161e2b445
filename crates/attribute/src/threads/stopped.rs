//! Threads that are stopped by a signal or a tracer.

use super::follower::ThreadFollower;
use super::state::{State, Thread};
use super::{Episode, EpisodeKind};
use crate::culprits;
use crate::name_resolver::NameResolver;
use crate::windows::Slice;
use jitterscope_model::{CpuId, Evidence, StoppedBy, Ticks};
use std::sync::Arc;

/// What stopped a thread that a switch takes off its CPU in this state.
pub(super) fn stopped_by(prev_state: u64) -> Option<StoppedBy> {
    culprits::stopped_by(u16::try_from(prev_state & 0xff).unwrap_or_default())
}

impl ThreadFollower {
    /// Ends the stop of a thread, if it was stopped.
    pub(super) fn end_stop(&mut self, tid: i32, at: Ticks, resolver: &dyn NameResolver) {
        let Some(thread) = self.threads.get(&tid) else {
            return;
        };
        let State::Stopped(by) = thread.state else {
            return;
        };
        let episode = self.stop(thread, by, at, resolver);
        self.account(tid, at);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.state = State::Blocked;
        }
        self.suffered(episode, false);
    }

    /// The stop of a thread up to `until`, with the sender of the signal before its beginning.
    pub(super) fn stop(
        &self,
        thread: &Thread,
        by: StoppedBy,
        until: Ticks,
        resolver: &dyn NameResolver,
    ) -> Episode {
        let (start, end) = (thread.since, until.max(thread.since));
        let culprit = culprits::stopped(by, thread.id.tid, start, &self.senders, resolver);
        Episode {
            thread: thread.id,
            kind: EpisodeKind::Stopped,
            cpu: thread.cpu.unwrap_or(CpuId(0)),
            migrated_from: None,
            start,
            end,
            slices: vec![Slice {
                start,
                end,
                culprit: Arc::new(culprit.into()),
                evidence: Evidence::LeavingState,
                turn: 0,
                sums: 0,
            }],
            waker: None,
        }
    }
}
