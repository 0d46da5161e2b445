//! The state of a followed thread.

use super::Episode;
use super::account::Account;
use super::sleeps::{Early, Sleep};
use crate::culprits::Waits;
use crate::occupancy::Mark;
use crate::windows::Slice;
use jitterscope_model::{CpuId, Sender, StoppedBy, ThreadRef, Ticks};
use std::collections::VecDeque;

/// `EXIT_DEAD` and `EXIT_ZOMBIE`.
pub(super) const ENDED: u64 = 0x30;

/// The part of a wait on one CPU's run queue.
#[derive(Debug)]
pub(super) struct Leg {
    pub(super) cpu: CpuId,
    pub(super) from: Ticks,
    pub(super) mark: Mark,
    /// Its priority, as the kernel counts it; `None` if the records of this CPU show when it began to wait.
    pub(super) prio: Option<i16>,
}

impl Leg {
    /// When it began to wait here, if its switches there do not show it.
    pub(super) fn waits(&self) -> Option<Waits> {
        self.prio.map(|prio| Waits {
            since: self.from,
            prio,
        })
    }
}

/// The state of a thread.
#[derive(Debug)]
pub(super) enum State {
    /// Unknown: no record shows it yet. If not `lossy`, all records since are available, so the first one will also
    /// show the earlier state.
    Unknown {
        lossy: bool,
    },
    /// It has this CPU.
    Running {
        cpu: CpuId,
        /// When it was last woken, although it had not yet left the CPU, and for which CPU.
        woken: Option<(Ticks, CpuId)>,
    },
    /// It is runnable without a CPU.
    Runnable {
        /// Whether it was preempted, rather than woken.
        preempted: bool,
        /// Whether this is assumed because of a wake-up just before it was switched out: another wake-up means that it
        /// did sleep.
        guessed: bool,
        leg: Leg,
        /// What had the CPUs where it waited before.
        before: Vec<Slice>,
        /// The first CPU where it waited.
        first_cpu: CpuId,
        waker: Option<Sender>,
        /// Its priority, as the kernel counts it.
        prio: i16,
    },
    Blocked,
    /// It is stopped, until it is woken.
    Stopped(StoppedBy),
    Exited,
}

/// The known state of a thread when following begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    #[default]
    Unknown,
    Asleep,
    Stopped(StoppedBy),
}

#[derive(Debug)]
pub(super) struct Thread {
    pub(super) id: ThreadRef,
    pub(super) role: Option<&'static str>,
    pub(super) state: State,
    pub(super) since: Ticks,
    pub(super) from: Ticks,
    pub(super) appeared: bool,
    /// The CPU where it last ran, or was moved to.
    pub(super) cpu: Option<CpuId>,
    pub(super) account: Account,
    /// The last episode, which the next one may directly follow.
    pub(super) pending: Option<Episode>,
    /// End of the last episode.
    pub(super) told_until: Ticks,
    /// When records were first lost since it went to sleep; if before `since`, during an earlier sleep.
    pub(super) doubted: Option<Ticks>,
    pub(super) history: VecDeque<Episode>,
    /// Whether it went to sleep like a frozen thread: right after an interrupt or a wake-up.
    pub(super) slept_at_once: bool,
    /// Its last sleep, until its next turn on a CPU.
    pub(super) sleep: Option<Sleep>,
    /// The stack of a sleep that has not begun.
    pub(super) early: Option<Early>,
}
