//! The threads that belong on watched CPUs, and their states.

use super::settings::PassiveSettings;
use crate::culprits::Waits;
use jitterscope_model::{Comm, CpuId, Name, Phase, ThreadRef, Ticks};
use std::collections::BTreeMap;

/// The most threads that change their control group in one turn of the drain and are looked at.
const MOST_MOVED: usize = 64;

/// A thread that belongs on the watched CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Belonging {
    pub thread: ThreadRef,
    /// Only on this CPU; on all of them if `None`.
    pub on: Option<CpuId>,
    /// Whether it sleeps, if known.
    pub asleep: bool,
}

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Unknown, or on a CPU that is not watched.
    Unknown,
    Asleep,
    /// It has this CPU. `woken`: when it was last woken, although it had not left the CPU.
    Running {
        cpu: CpuId,
        woken: Option<Ticks>,
    },
    /// It waits for this CPU, in one of the CPU's waits. `guessed`: because of a wake-up just before it went to sleep.
    Waiting {
        cpu: CpuId,
        guessed: bool,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) id: ThreadRef,
    on: Option<CpuId>,
    pub(super) state: State,
}

impl Member {
    pub(super) fn belongs_on(&self, cpu: CpuId) -> bool {
        self.on.is_none_or(|only| only == cpu)
    }
}

/// A thread's wait for a CPU.
#[derive(Clone, Debug)]
pub(super) struct Wait {
    pub(super) tid: i32,
    pub(super) since: Ticks,
    pub(super) until: Option<Ticks>,
    pub(super) phase: Phase,
    /// Its priority, as the kernel counts it, if a wake-up or a move shows it.
    pub(super) prio: Option<i16>,
    /// The CPU and thread that woke it.
    pub(super) woken_by: Option<(CpuId, i32)>,
}

impl Wait {
    pub(super) fn of(tid: i32, since: Ticks, phase: Phase) -> Wait {
        Wait {
            tid,
            since,
            until: None,
            phase,
            prio: None,
            woken_by: None,
        }
    }

    /// The beginning of the wait, if the switches of the CPU do not show it.
    pub(super) fn reported(&self) -> Option<(i32, Waits)> {
        let since = self.since;
        self.prio.map(|prio| (self.tid, Waits { since, prio }))
    }
}

#[derive(Debug)]
pub(super) struct Members {
    threads: BTreeMap<i32, Member>,
    names: Vec<Comm>,
    most: usize,
    pub(super) refused: u64,
    pub(super) ever: bool,
    /// Threads that belong since the last call.
    pub(super) newly: Vec<i32>,
    /// Threads that changed their control group since the last call, [`MOST_MOVED`] at most, and the path of the new one.
    pub(super) moved: Vec<(i32, Option<Name>)>,
}

impl Members {
    pub(super) fn new(names: Vec<Comm>, most: usize) -> Members {
        Members {
            threads: BTreeMap::new(),
            names,
            most,
            refused: 0,
            ever: false,
            newly: Vec::new(),
            moved: Vec::new(),
        }
    }

    /// Adds a thread. A known one stays unchanged.
    pub(super) fn add(&mut self, who: Belonging) {
        if self.threads.contains_key(&who.thread.tid) || who.thread.tid == 0 {
            return;
        }
        if self.threads.len() >= self.most {
            self.refused += 1;
            return;
        }
        self.ever = true;
        self.newly.push(who.thread.tid);
        let state = if who.asleep {
            State::Asleep
        } else {
            State::Unknown
        };
        self.threads.insert(
            who.thread.tid,
            Member {
                id: who.thread,
                on: who.on,
                state,
            },
        );
    }

    /// A record names a thread: threads with a wanted name belong from then on, and names may change.
    pub(super) fn meet(&mut self, tid: i32, comm: Comm) {
        if let Some(member) = self.threads.get_mut(&tid) {
            member.id.comm = comm;
        } else if self.names.contains(&comm) {
            self.add(Belonging {
                thread: ThreadRef { tid, comm },
                on: None,
                asleep: false,
            });
        }
    }

    /// A thread changed its control group to this one, or began in another than its creator's, which no record names.
    pub(super) fn moved(&mut self, tid: i32, path: Option<&Name>, settings: &PassiveSettings) {
        if settings.children && self.moved.len() < MOST_MOVED {
            self.moved.push((tid, path.cloned()));
        }
    }

    /// Whether threads with this name belong.
    pub(super) fn is_wanted(&self, comm: Comm) -> bool {
        self.names.contains(&comm)
    }

    pub(super) fn get(&self, tid: i32) -> Option<&Member> {
        self.threads.get(&tid)
    }

    pub(super) fn get_mut(&mut self, tid: i32) -> Option<&mut Member> {
        self.threads.get_mut(&tid)
    }

    pub(super) fn remove(&mut self, tid: i32) -> Option<Member> {
        self.threads.remove(&tid)
    }

    /// The thread, if it belongs on a CPU.
    pub(super) fn on(&self, cpu: CpuId, tid: i32) -> Option<ThreadRef> {
        self.threads
            .get(&tid)
            .filter(|member| member.belongs_on(cpu))
            .map(|member| member.id)
    }

    /// The threads' activity on a CPU is no longer known.
    pub(super) fn forget(&mut self, gone: CpuId) {
        for member in self.threads.values_mut() {
            let there = match member.state {
                State::Running { cpu, .. } | State::Waiting { cpu, .. } => cpu == gone,
                State::Unknown | State::Asleep => false,
            };
            if there {
                member.state = State::Unknown;
            }
        }
    }
}
