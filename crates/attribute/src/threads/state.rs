//! What a followed thread is doing.

use super::Episode;
use super::account::Account;
use crate::culprits::Waits;
use crate::occupancy::Mark;
use crate::windows::Slice;
use jitterscope_model::{CpuId, Sender, StoppedBy, ThreadRef, Ticks};
use std::collections::VecDeque;

/// `EXIT_DEAD` and `EXIT_ZOMBIE`.
pub(super) const ENDED: u64 = 0x30;

/// Part of a wait that was spent on one CPU's run queue.
#[derive(Debug)]
pub(super) struct Leg {
    pub(super) cpu: CpuId,
    pub(super) from: Ticks,
    pub(super) mark: Mark,
    /// Its priority, as the kernel counts it; `None` where the records of this CPU tell when it began to wait.
    pub(super) prio: Option<i16>,
}

impl Leg {
    /// When it began to wait here, where its switches there do not tell.
    pub(super) fn waits(&self) -> Option<Waits> {
        self.prio.map(|prio| Waits {
            since: self.from,
            prio,
        })
    }
}

/// What a thread is doing.
#[derive(Debug)]
pub(super) enum State {
    /// No record has said yet. All records since are there, so that the first one tells what it did all
    /// along; not so when `lossy`.
    Unknown { lossy: bool },
    /// It has this CPU.
    Running {
        /// Which.
        cpu: CpuId,
        /// When somebody last woke it though it had not yet left the CPU, and for where.
        woken: Option<(Ticks, CpuId)>,
    },
    /// It could run and does not.
    Runnable {
        /// Whether it was switched out runnable, rather than woken.
        preempted: bool,
        /// Whether that rests on a wake-up that came just before it was switched out: it sleeps after all
        /// if another one comes.
        guessed: bool,
        /// Where it waits now.
        leg: Leg,
        /// Who had the CPUs where it waited before.
        before: Vec<Slice>,
        /// The first CPU where it waited.
        first_cpu: CpuId,
        /// Who woke it.
        waker: Option<Sender>,
        /// Its priority, as the kernel counts it.
        prio: i16,
    },
    /// It sleeps.
    Blocked,
    /// It is not let run, until it is woken.
    Stopped(StoppedBy),
    /// It has ended.
    Exited,
}

/// What is known of a thread when following it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// Nothing.
    #[default]
    Unknown,
    /// It sleeps.
    Asleep,
    /// It is stopped.
    Stopped(StoppedBy),
}

/// One followed thread.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) id: ThreadRef,
    pub(super) role: Option<&'static str>,
    pub(super) state: State,
    pub(super) since: Ticks,
    pub(super) from: Ticks,
    pub(super) appeared: bool,
    /// Where it last ran, or was moved to.
    pub(super) cpu: Option<CpuId>,
    pub(super) account: Account,
    /// The last episode, which the next may follow at once.
    pub(super) pending: Option<Episode>,
    /// End of the last episode.
    pub(super) told_until: Ticks,
    /// When records were first lost since it went to sleep; of an earlier sleep where it lies before `since`.
    pub(super) doubted: Option<Ticks>,
    pub(super) history: VecDeque<Episode>,
}
