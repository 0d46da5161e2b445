//! Threads that are frozen by the freezer of a control group.
//!
//! No record shows that a thread is frozen: it leaves its CPU as if it slept. The only other fact is the turn of the
//! drain in which a freezer above it was written to. Freezing interrupts a running thread or wakes a sleeping one, and
//! the thread then goes to sleep at once. Thawing wakes it, from another process, because its own process is frozen.

use super::follower::ThreadFollower;
use super::state::State;
use crate::lexicon::Lexicon;
use jitterscope_model::{
    Comm, DrainTurn, ExecutionContext, KernelEvent, Nanos, StoppedBy, TickRate, Ticks,
};
use std::collections::{HashMap, VecDeque};

/// Maximum of turns per thread.
const MOST_TURNS: usize = 16;
/// Maximum of threads with turns.
const MOST_THREADS: usize = 1 << 16;
/// A write is noted after it takes effect, possibly one turn later.
const NOTED_WITHIN: Nanos = Nanos(60_000_000);

/// When freezers above threads were written to.
#[derive(Debug)]
pub(super) struct Freezes {
    read: Ticks,
    within: Ticks,
    turns: HashMap<i32, VecDeque<(Ticks, Ticks)>>,
}

impl Freezes {
    pub(super) fn new(rate: TickRate) -> Freezes {
        Freezes {
            read: Ticks(0),
            within: rate.ticks(NOTED_WITHIN),
            turns: HashMap::new(),
        }
    }

    /// Adds the notes of a turn.
    pub(super) fn turn(&mut self, turn: &DrainTurn) {
        if turn.quotas_read == Ticks(0) {
            return;
        }
        let from = std::mem::replace(&mut self.read, turn.quotas_read);
        for tid in &turn.frozen {
            if self.turns.len() >= MOST_THREADS {
                self.turns.clear();
            }
            let turns = self.turns.entry(*tid).or_default();
            if turns.len() >= MOST_TURNS {
                turns.pop_front();
            }
            turns.push_back((from, turn.quotas_read));
        }
    }

    /// Whether a thread may have been frozen at some time.
    fn touch(&self, tid: i32, at: Ticks) -> bool {
        let within =
            |(from, to): &(Ticks, Ticks)| at + self.within >= *from && at <= *to + self.within;
        self.turns
            .get(&tid)
            .is_some_and(|turns| turns.iter().any(within))
    }
}

impl ThreadFollower {
    /// A thread is woken: if it was frozen, it was stopped and did not sleep.
    pub(super) fn thawed(&mut self, event: &KernelEvent, tid: i32, lexicon: &dyn Lexicon) {
        let Some(thread) = self.threads.get(&tid) else {
            return;
        };
        if !matches!(thread.state, State::Blocked)
            || !thread.slept_at_once
            || event.context != ExecutionContext::Thread
            || event.tid == 0
            || !self.freezes.touch(tid, thread.since)
        {
            return;
        }
        let process = |tid, comm| lexicon.identity(tid, comm).tgid.unwrap_or(tid);
        let waker = lexicon.comm(event.tid).map(|comm| Comm::new(&comm));
        let of_its_own =
            waker.is_some_and(|comm| process(event.tid, comm) == process(tid, thread.id.comm));
        if !of_its_own && let Some(thread) = self.threads.get_mut(&tid) {
            thread.state = State::Stopped(StoppedBy::Freezer);
        }
    }
}
