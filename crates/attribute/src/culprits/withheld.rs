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
    /// It could run, and from then on was surely on the run queue.
    Could {
        prio: i16,
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
    let over = |since: Ticks| {
        waits
            .iter()
            .any(|wait| since <= wait.since && wait.since <= window.from)
    };
    let mut waits = waits.iter().peekable();
    let mut state = Victim::Other;
    let of = |frame: &Frame| {
        while let Some(wait) = waits.next_if(|wait| wait.since <= frame.opened) {
            // Who runs already is not woken.
            if !matches!(state, Victim::Could { .. }) {
                state = Victim::Could {
                    prio: wait.prio,
                    known: wait.since + on_its_way,
                };
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
                _ if left == 0 => Victim::Could {
                    prio: before.prio,
                    known: frame.opened,
                },
                _ if spins && stopped_by(left).is_none() => Victim::Asleep,
                _ => Victim::Other,
            };
        }
        match state {
            Victim::Other => Withheld::No,
            Victim::Stopped(by, since) => Withheld::Stopped(by, since),
            Victim::Asleep => Withheld::Asleep,
            // Whoever had the CPU before, or was chosen without knowing of it, has it by right.
            Victim::Could { known, .. } if frame.opened < known => Withheld::No,
            Victim::Could { prio, .. } => by_class(prio, frame),
        }
    };
    let mut turns = Vec::new();
    for (index, withheld) in window.frames.iter().map(of).enumerate() {
        if withheld != Withheld::No {
            turns.reserve(window.frames.len() - turns.len());
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
    pub(crate) fn culprit(
        self,
        turn: &Frame,
        window: &Window,
        naming: &Naming<'_>,
    ) -> Option<Culprit> {
        let verdict = |verdict| Some(Subject::verdict(verdict).into());
        match self {
            Withheld::No | Withheld::Perhaps => None,
            Withheld::RealTime => {
                Some(Subject::Throttle(naming.lexicon.task(&naming.task(turn))).into())
            }
            Withheld::Deadline => verdict(Verdict::DeadlineBudget),
            Withheld::Idle => match quota(window, naming) {
                Some(quota) => Some(Subject::Quota(quota).into()),
                None => verdict(Verdict::RunnableIdle),
            },
            Withheld::Stopped(by, since) => Some(stopped(
                by,
                naming.victim,
                since,
                naming.senders,
                naming.lexicon,
            )),
            Withheld::Asleep => verdict(Verdict::AsleepInKernel),
        }
    }

    /// What the verdict on such a turn rests on, and how sure it is; `None` where that is the turn's affair.
    pub(crate) fn basis(
        self,
        window: &Window,
        naming: &Naming<'_>,
    ) -> Option<(Evidence, Confidence)> {
        match self {
            Withheld::No | Withheld::RealTime => None,
            Withheld::Deadline | Withheld::Stopped(..) => {
                Some((Evidence::LeavingState, Confidence::High))
            }
            Withheld::Asleep => Some((Evidence::LeavingState, Confidence::Low)),
            Withheld::Idle => Some(match quota(window, naming) {
                Some(_) => (Evidence::QuotaCount, Confidence::Medium),
                None => (Evidence::LeavingState, Confidence::Low),
            }),
            Withheld::Perhaps => quota(window, naming)
                .map(|_| (Evidence::SwitchRecordsWhileThrottled, Confidence::Medium)),
        }
    }
}

/// The quota that may have kept the victim from running in the window.
fn quota(window: &Window, naming: &Naming<'_>) -> Option<Quota> {
    naming
        .bandwidth
        .quota(naming.victim, window.from, window.until)
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

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::SchedClass;

    const VICTIM: i32 = 7;
    const FAIR: i16 = 120;
    const STOPPED: u16 = 4;

    /// A thread's turn from `at` on; `left`: the victim left the CPU for it in this state.
    fn turn(at: u64, tid: i32, prio: i16, left: Option<u16>) -> Frame {
        let frame = Frame {
            prio,
            ..Frame::inferred_turn(tid, Ticks(at))
        };
        let Some(state) = left else { return frame };
        let key = u64::from(VICTIM as u32) | u64::from(FAIR as u16) << 32;
        Frame {
            key,
            subject: state.into(),
            ..frame
        }
    }

    /// What kept the victim from running in each turn of a window that begins at `from`.
    fn kept(from: u64, turns: &[Frame], waits: &[u64], spins: bool) -> Vec<Withheld> {
        let window = Window {
            from: Ticks(from),
            frames: turns.to_vec(),
            ..Window::default()
        };
        let waits: Vec<Waits> = waits
            .iter()
            .map(|at| Waits {
                since: Ticks(*at),
                prio: FAIR,
            })
            .collect();
        let found = withheld(&window, VICTIM, &waits, spins, TickRate::NANOSECONDS);
        (0..turns.len()).map(|at| found.at(at as u32)).collect()
    }

    #[test]
    fn by_what_right_another_has_the_cpu_follows_from_both_classes() {
        use Withheld::{Deadline, Idle, No, Perhaps, RealTime};
        // Deadline, the most and the least urgent real-time thread, and fair ones.
        let others = [-1, 0, 99, 100, 139];
        for (victim, beside_idle, beside_others) in [
            (Frame::NO_PRIORITY, No, [No; 5]),
            (-1, Deadline, [No, Deadline, Deadline, Deadline, Deadline]),
            (0, RealTime, [No, No, No, RealTime, RealTime]),
            (99, RealTime, [No, No, No, RealTime, RealTime]),
            (100, Idle, [Perhaps; 5]),
            (139, Idle, [Perhaps; 5]),
        ] {
            assert_eq!(
                by_class(victim, &turn(0, 0, FAIR, None)),
                beside_idle,
                "{victim}"
            );
            let found = others.map(|prio| by_class(victim, &turn(0, 8, prio, None)));
            assert_eq!(
                found,
                beside_others,
                "{victim} {:?}",
                SchedClass::of_priority(victim.into())
            );
        }
    }

    #[test]
    fn what_a_switch_says_of_the_victim_holds_over_all_turns_until_it_has_its_cpu_again() {
        use Withheld::{Asleep, No, Perhaps, Stopped};
        let turns = |state| {
            let own = |at| turn(at, VICTIM, FAIR, None);
            [
                own(0),
                turn(100, 8, FAIR, Some(state)),
                turn(200, 9, FAIR, None),
                own(300),
                turn(400, 8, FAIR, None),
            ]
        };
        // The bit above the states marks who was preempted.
        for runnable in [0, 0x100] {
            assert_eq!(
                kept(0, &turns(runnable), &[], false),
                [No, Perhaps, Perhaps, No, No]
            );
        }
        for (spins, told) in [(false, No), (true, Asleep)] {
            assert_eq!(kept(0, &turns(1), &[], spins), [No, told, told, No, No]);
        }
        for spins in [false, true] {
            let by = Stopped(StoppedBy::Signal, Ticks(100));
            assert_eq!(kept(0, &turns(STOPPED), &[], spins), [No, by, by, No, No]);
        }
        // Time without an owner is nobody's turn.
        let mut unrecorded = turns(0);
        unrecorded[2] = Frame::nobody(crate::occupancy::Class::Unrecorded, Ticks(200));
        assert_eq!(kept(0, &unrecorded, &[], false), [No, Perhaps, No, No, No]);
    }

    #[test]
    fn a_stop_that_was_over_before_the_window_began_is_none() {
        let stopped = |woken: u64| {
            let turns = [turn(100, 8, FAIR, Some(STOPPED)), turn(500, 9, FAIR, None)];
            kept(400, &turns, &[woken], false) != [Withheld::No; 2]
        };
        assert_eq!([99, 100, 400, 401].map(stopped), [true, false, false, true]);
    }

    #[test]
    fn a_wake_up_counts_from_a_millisecond_after_it_unless_the_victim_could_run_already() {
        use Withheld::{No, Perhaps};
        let known = 1000 + ON_ITS_WAY.0;
        let turns = [900, 1000, known - 1, known].map(|at| turn(at, 8, FAIR, None));
        assert_eq!(kept(0, &turns, &[1000], false), [No, No, No, Perhaps]);
        let turns = [
            turn(900, 8, FAIR, Some(0)),
            turn(1000, 9, FAIR, None),
            turn(1001, 8, FAIR, None),
        ];
        assert_eq!(kept(0, &turns, &[1000], false), [Perhaps; 3]);
        // Of several wake-ups the first counts.
        let turns = [turn(known, 8, FAIR, None)];
        assert_eq!(kept(0, &turns, &[1000, 2000], false), [Perhaps]);
        assert_eq!(kept(0, &turns, &[1001], false), [No]);
    }
}
