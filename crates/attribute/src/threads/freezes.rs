//! Threads that are frozen by the freezer of a control group.
//!
//! No record shows that a thread is frozen: it leaves its CPU as if it slept. The only other fact is the turn of the
//! drain in which a freezer above it was written to. Freezing interrupts a running thread or wakes a sleeping one, and
//! the thread then goes to sleep at once. Thawing wakes it, from another process, because its own process is frozen.
//!
//! Version 1 of control groups, since Linux 6.1, leaves a sleeping thread in place, and keeps its wake-ups to itself
//! until it is thawed. So the wake-up of a thread that was held frozen at the end of an earlier turn is its thawing.

use super::follower::ThreadFollower;
use super::state::State;
use crate::name_resolver::NameResolver;
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
    turns: HashMap<i32, VecDeque<Noted>>,
}

/// A turn in which a freezer above a thread was written to.
#[derive(Clone, Copy, Debug)]
struct Noted {
    from: Ticks,
    to: Ticks,
    /// Whether it held the thread frozen at the end of the turn.
    held: bool,
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
            turns.push_back(Noted {
                from,
                to: turn.quotas_read,
                held: turn.held.contains(tid),
            });
        }
    }

    /// Whether a thread may have been frozen at some time.
    fn touch(&self, tid: i32, at: Ticks) -> bool {
        let within = |noted: &Noted| at + self.within >= noted.from && at <= noted.to + self.within;
        self.turns
            .get(&tid)
            .is_some_and(|turns| turns.iter().any(within))
    }

    /// Since when a thread that sleeps has been held frozen in place at the latest, if it is at `at`.
    fn held(&self, tid: i32, at: Ticks) -> Option<Ticks> {
        let mut turns = self.turns.get(&tid)?.iter().rev();
        let last = turns.find(|noted| noted.to < at)?;
        last.held.then_some(last.to)
    }
}

impl ThreadFollower {
    /// A thread is woken: if it was frozen, it was stopped and did not sleep.
    pub(super) fn thawed(&mut self, event: &KernelEvent, tid: i32, resolver: &dyn NameResolver) {
        let Some(thread) = self.threads.get(&tid) else {
            return;
        };
        if !matches!(thread.state, State::Blocked)
            || event.context != ExecutionContext::Thread
            || event.tid == 0
        {
            return;
        }
        let at_once = thread.slept_at_once && self.freezes.touch(tid, thread.since);
        let in_place = || {
            let held = self.freezes.held(tid, event.time);
            held.filter(|held| thread.since < *held)
        };
        let Some(since) = at_once.then_some(thread.since).or_else(in_place) else {
            return;
        };
        let process = |tid, comm| resolver.identity(tid, comm).tgid.unwrap_or(tid);
        let waker = resolver.comm(event.tid).map(|comm| Comm::new(&comm));
        let of_its_own =
            waker.is_some_and(|comm| process(event.tid, comm) == process(tid, thread.id.comm));
        if of_its_own {
            return;
        }
        self.account(tid, since);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.state = State::Stopped(StoppedBy::Freezer);
        }
    }
}
