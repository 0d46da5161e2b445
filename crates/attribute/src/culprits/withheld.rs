//! The victim could run, or was stopped, and the scheduler gave its CPU to who would not have had it otherwise:
//! a lesser class, or nobody.
//!
//! | the victim | the CPU | it was kept from running by |
//! |---|---|---|
//! | real-time, runnable | idles, or runs a fair thread | real-time throttling (`sched_rt_runtime_us`), or its successor, the fair server |
//! | deadline, runnable | idles, or runs a lesser class | its own budget |
//! | fair, runnable | idles | a CPU quota above it, if that was counted meanwhile; else nothing that is known |
//! | fair, runnable | runs another thread | that thread; perhaps a quota, if that was counted meanwhile |
//! | stopped | whatever it does | who stopped it |
//! | asleep, though it only reads the clock | whatever it does | a freezer, or what a page fault waits for |

use super::{Naming, stopped, stopped_by};
use crate::bandwidth::is_idle_exit;
use crate::occupancy::{Frame, Window};
use jitterscope_model::{
    Confidence, Culprit, Evidence, Nanos, Quota, StoppedBy, Subject, TickRate, Ticks, Verdict,
};

/// Sleep and stop states of a switch; the bit above them marks a preempted task, which is runnable.
const TASK_STATES: u16 = 0xff;
/// A wake-up is recorded before the thread is on a run queue: whom the scheduler chooses within this time, it
/// may have chosen without knowing.
const ON_ITS_WAY: Nanos = Nanos(1_000_000);

/// Since when the victim could run, as far as that is not known from the switches of its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waits {
    /// Since when it is on its way to this CPU's run queue.
    pub(crate) since: Ticks,
    /// Its priority, as the kernel counts it.
    pub(crate) prio: i16,
}

/// What kept the victim from running in a turn of another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Withheld {
    /// The turn's thread by itself, or the victim's own sleep.
    No,
    /// Throttling of its class.
    RealTime,
    /// Its budget ran out.
    Deadline,
    /// Nobody had the CPU though it could run.
    Idle,
    /// Another thread had the CPU, which is in order; but it might not have been allowed to run either.
    Perhaps,
    /// It has been stopped since then.
    Stopped(StoppedBy, Ticks),
    /// It slept, and does so by nothing of its own.
    Asleep,
}

/// What kept the victim from running, by frame of a window; behind the last one nothing did, so that most windows
/// need no memory for it.
#[derive(Debug)]
pub(crate) struct WithheldTurns(Vec<Withheld>);

impl WithheldTurns {
    /// What did in the turn of a frame.
    pub(crate) fn at(&self, frame: u32) -> Withheld {
        self.0.get(frame as usize).copied().unwrap_or(Withheld::No)
    }
}

/// What the victim was doing.
#[derive(Clone, Copy)]
enum Victim {
    /// It ran, slept, or is not known of.
    Other,
    /// It could run since then; on its way to the run queue until the second time.
    Could {
        prio: i16,
        since: Ticks,
        known: Ticks,
    },
    Stopped(StoppedBy, Ticks),
    Asleep,
}

/// What kept the victim from running, by frame of the window; found at each turn. `waits`: when it began to wait
/// for this CPU, as wake-ups and moves to it tell, in order of time. `spins`: it only reads the clock.
pub(crate) fn withheld(
    window: &Window,
    victim: i32,
    waits: &[Waits],
    spins: bool,
    rate: TickRate,
) -> WithheldTurns {
    let on_its_way = rate.ticks(ON_ITS_WAY);
    // It was let go on before the window begins.
    let over = |since: Ticks| waits.iter().any(|wait| since <= wait.since && wait.since <= window.from);
    let mut waits = waits.iter().peekable();
    let mut state = Victim::Other;
    let of = |frame: &Frame| {
        while let Some(wait) = waits.next_if(|wait| wait.since <= frame.opened) {
            // Who runs already is not woken.
            if !matches!(state, Victim::Could { .. }) {
                let (prio, since) = (wait.prio, wait.since);
                state = Victim::Could { prio, since, known: since + on_its_way };
            }
        }
        if !frame.is_turn() {
            return Withheld::No;
        }
        if frame.tid == victim {
            state = Victim::Other;
            return Withheld::No;
        }
        if let Some(before) = frame.before().filter(|before| before.tid == victim) {
            let left = before.state & TASK_STATES;
            state = match stopped_by(left) {
                Some(by) if !over(frame.opened) => Victim::Stopped(by, frame.opened),
                _ if left == 0 => {
                    Victim::Could { prio: before.prio, since: frame.opened, known: frame.opened }
                }
                _ if spins && stopped_by(left).is_none() => Victim::Asleep,
                _ => Victim::Other,
            };
        }
        match state {
            Victim::Other => Withheld::No,
            Victim::Stopped(by, since) => Withheld::Stopped(by, since),
            Victim::Asleep => Withheld::Asleep,
            // Whoever had the CPU before has it by right.
            Victim::Could { since, .. } if frame.opened < since => Withheld::No,
            Victim::Could { known, .. } if frame.opened < known => Withheld::No,
            Victim::Could { prio, .. } => by_class(prio, frame),
        }
    };
    let mut turns = Vec::new();
    for (index, withheld) in window.frames.iter().map(of).enumerate() {
        if withheld != Withheld::No {
            turns.resize(index, Withheld::No);
            turns.push(withheld);
        }
    }
    WithheldTurns(turns)
}

/// Who can run by class, and who was given the CPU.
fn by_class(victim: i16, turn: &Frame) -> Withheld {
    let idle = turn.tid == 0;
    match victim {
        Frame::NO_PRIORITY => Withheld::No,
        i16::MIN..0 if idle || turn.priority() >= 0 => Withheld::Deadline,
        0..Frame::FIRST_FAIR if idle || turn.priority() >= Frame::FIRST_FAIR => Withheld::RealTime,
        Frame::FIRST_FAIR.. if idle => Withheld::Idle,
        Frame::FIRST_FAIR.. => Withheld::Perhaps,
        _ => Withheld::No,
    }
}

impl Withheld {
    /// Whom to blame for the turn instead of its thread; `None` when that is its thread.
    pub(crate) fn culprit(self, turn: &Frame, window: &Window, naming: &Naming<'_>) -> Option<Culprit> {
        let verdict = |verdict| Some(Subject::verdict(verdict).into());
        match self {
            Withheld::No | Withheld::Perhaps => None,
            Withheld::RealTime => Some(Subject::Throttle(naming.lexicon.task(&naming.task(turn))).into()),
            Withheld::Deadline => verdict(Verdict::DeadlineBudget),
            Withheld::Idle => match quota(window, naming) {
                Some(quota) => Some(Subject::Quota(quota).into()),
                None => verdict(Verdict::RunnableIdle),
            },
            Withheld::Stopped(by, since) => {
                Some(stopped(by, naming.victim, since, naming.senders, naming.lexicon))
            }
            Withheld::Asleep => verdict(Verdict::AsleepInKernel),
        }
    }

    /// What the verdict on such a turn rests on, and how sure it is; `None` where that is the turn's affair.
    pub(crate) fn basis(self, window: &Window, naming: &Naming<'_>) -> Option<(Evidence, Confidence)> {
        match self {
            Withheld::No | Withheld::RealTime => None,
            Withheld::Deadline | Withheld::Stopped(..) => Some((Evidence::LeavingState, Confidence::High)),
            Withheld::Asleep => Some((Evidence::LeavingState, Confidence::Low)),
            Withheld::Idle => Some(match quota(window, naming) {
                Some(_) => (Evidence::QuotaCount, Confidence::Medium),
                None => (Evidence::LeavingState, Confidence::Low),
            }),
            Withheld::Perhaps => {
                quota(window, naming).map(|_| (Evidence::SwitchRecordsWhileThrottled, Confidence::Medium))
            }
        }
    }
}

/// The quota that may have kept the victim from running in the window.
fn quota(window: &Window, naming: &Naming<'_>) -> Option<Quota> {
    naming.bandwidth.quota(naming.victim, window.from, window.until)
}

/// A thread was woken beside an idle CPU and waited so long: that was a quota if one was counted, unless it can
/// be no more than the way out of idle.
pub(crate) fn quota_beside_idle(
    waited: Ticks,
    window: &Window,
    naming: &Naming<'_>,
    rate: TickRate,
) -> Option<Quota> {
    quota(window, naming).filter(|_| !is_idle_exit(waited, rate))
}
