//! The victim was runnable, or stopped, and the scheduler gave its CPU to a lesser class or left it idle.
//!
//! | the victim | the CPU | what kept the victim from running |
//! |---|---|---|
//! | real-time, runnable | idles, or runs a fair thread | real-time throttling (`sched_rt_runtime_us`), or its successor, the fair server |
//! | deadline, runnable | idles, or runs a lesser class | its own budget; or its `sched_yield`, if no timer interrupt made it leave |
//! | fair, runnable | idles | no known reason |
//! | fair, runnable | runs another thread | that thread |
//! | stopped | any | what stopped it |
//! | asleep, although it only reads the clock | any | a freezer, or the wait of a page fault |
//! | in no recorded state | idles | not known; never the idle thread, which takes nothing from anyone |
//!
//! Time that a CPU quota took from a fair victim is already separated: see `windows/throttled.rs`.

use super::{Naming, idle_exit, stopped, stopped_by};
use crate::occupancy::{Before, Frame, Window};
use jitterscope_model::{
    Confidence, Culprit, Evidence, Nanos, StoppedBy, Subject, TickRate, Ticks, Verdict,
};

/// Sleep and stop states of a switch; the bit above them marks a preempted task, which is runnable.
const TASK_STATES: u16 = 0xff;
/// A wake-up is recorded before the thread is on a run queue: within this time, the scheduler may choose another thread
/// without knowing of it.
const ON_ITS_WAY: Nanos = Nanos(1_000_000);

/// The start of the victim's wait, if the switches of its CPU do not show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waits {
    /// Since when it is on its way to this CPU's run queue.
    pub(crate) since: Ticks,
    /// Its priority, as the kernel counts it.
    pub(crate) prio: i16,
}

/// What kept the victim from running during another thread's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unschedulable {
    /// Only the turn's thread, or the victim's own sleep.
    No,
    /// Throttling of its class.
    RealTime,
    /// Its deadline budget ran out.
    Deadline,
    /// It gave up the rest of its period.
    Yielded,
    /// The CPU idled although it was runnable.
    Idle,
    /// Another thread had the CPU by right; but from then on a throttled victim would not have been allowed to run
    /// either.
    Perhaps(Ticks),
    /// The CPU idled when it was woken at that time: this is the idle exit, unless it takes too long.
    LeavesIdle(Ticks),
    /// It has been stopped since then.
    Stopped(StoppedBy, Ticks),
    /// It slept, but not voluntarily.
    Asleep,
    /// The CPU idled, and no record shows the victim's state.
    IdleMeanwhile,
}

/// What kept the victim from running, by frame of a window. Frames beyond the end have `No`, so most windows need no
/// memory for this.
#[derive(Debug)]
pub(crate) struct UnschedulableTurns(Vec<Unschedulable>);

impl UnschedulableTurns {
    /// What kept the victim from running in the turn of a frame.
    pub(crate) fn at(&self, frame: u32) -> Unschedulable {
        self.0
            .get(frame as usize)
            .copied()
            .unwrap_or(Unschedulable::No)
    }
}

/// The state of the victim.
#[derive(Clone, Copy)]
enum Victim {
    /// It ran, slept, or its state is unknown.
    Other,
    /// It was runnable, and surely on the run queue from `known` on.
    Could {
        prio: i16,
        since: Ticks,
        known: Ticks,
        /// No interrupt made it leave its CPU.
        by_itself: bool,
    },
    Stopped(StoppedBy, Ticks),
    Asleep,
}

/// What kept the victim from running, by frame of the window, determined for each turn. `waits`: when it began to wait
/// for this CPU, by wake-ups and moves, in order of time. `spins`: it only reads the clock.
pub(crate) fn withheld(
    window: &Window,
    victim: i32,
    waits: &[Waits],
    spins: bool,
    rate: TickRate,
) -> UnschedulableTurns {
    let on_its_way = rate.ticks(ON_ITS_WAY);
    // It continued before the window begins.
    let over = |since: Ticks| {
        waits
            .iter()
            .any(|wait| since <= wait.since && wait.since <= window.from)
    };
    let mut waits = waits.iter().peekable();
    let mut state = Victim::Other;
    let of = |frame: &Frame| {
        while let Some(wait) = waits.next_if(|wait| wait.since <= frame.opened) {
            // A wake-up of a runnable thread changes nothing.
            if !matches!(state, Victim::Could { .. }) {
                state = Victim::Could {
                    prio: wait.prio,
                    since: wait.since,
                    known: wait.since + on_its_way,
                    by_itself: false,
                };
            }
        }
        if !frame.is_turn() {
            return Unschedulable::No;
        }
        if frame.tid == victim {
            state = Victim::Other;
            return Unschedulable::No;
        }
        if let Some(before) = frame.before().filter(|before| before.tid == victim) {
            let left = before.state & TASK_STATES;
            state = match stopped_by(left) {
                Some(by) if !over(frame.opened) => Victim::Stopped(by, frame.opened),
                _ if left == 0 => Victim::Could {
                    prio: before.prio,
                    since: frame.opened,
                    known: frame.opened,
                    by_itself: before.state & Before::BY_ITSELF != 0,
                },
                _ if spins && stopped_by(left).is_none() => Victim::Asleep,
                _ => Victim::Other,
            };
        }
        // It was woken in the middle of the turn.
        let woken = waits.peek().filter(|wait| wait.since < frame.end);
        let now = match (state, woken) {
            (Victim::Other, Some(wait)) => Victim::Could {
                prio: wait.prio,
                since: wait.since,
                known: Ticks(u64::MAX),
                by_itself: false,
            },
            (state, _) => state,
        };
        match now {
            Victim::Other => Unschedulable::No,
            Victim::Stopped(by, since) => Unschedulable::Stopped(by, since),
            Victim::Asleep => Unschedulable::Asleep,
            Victim::Could {
                prio,
                since,
                known,
                by_itself,
            } => match by_class(prio, since, frame.opened < known, frame) {
                // The kernel detects a used-up budget in a timer's interrupt; a thread yields in a system call.
                Unschedulable::Deadline if by_itself => Unschedulable::Yielded,
                withheld => withheld,
            },
        }
    };
    let mut turns = Vec::new();
    for (index, withheld) in window.frames.iter().map(of).enumerate() {
        if withheld != Unschedulable::No {
            turns.reserve(window.frames.len() - turns.len());
            turns.resize(index, Unschedulable::No);
            turns.push(withheld);
        }
    }
    UnschedulableTurns(turns)
}

/// What kept a victim of this class, runnable since `since`, from running in this turn. `early`: the turn may have
/// begun before the scheduler knew that the victim was runnable; then its thread had the CPU by right.
fn by_class(victim: i16, since: Ticks, early: bool, turn: &Frame) -> Unschedulable {
    let idle = turn.tid == 0;
    match victim {
        Frame::NO_PRIORITY => Unschedulable::No,
        Frame::FIRST_FAIR.. if !idle => Unschedulable::Perhaps(since),
        Frame::FIRST_FAIR.. if early => Unschedulable::LeavesIdle(since),
        Frame::FIRST_FAIR.. => Unschedulable::Idle,
        _ if early => Unschedulable::No,
        i16::MIN..0 if idle || turn.priority() >= 0 => Unschedulable::Deadline,
        0..Frame::FIRST_FAIR if idle || turn.priority() >= Frame::FIRST_FAIR => {
            Unschedulable::RealTime
        }
        _ => Unschedulable::No,
    }
}

impl Unschedulable {
    /// The idle thread is no culprit: it has a CPU only because no other thread wants it. So its turn says what is known
    /// of the victim.
    pub(crate) fn unless_idle(self, turn: &Frame) -> Unschedulable {
        match self {
            // Before it was woken, its state is not known.
            Unschedulable::LeavesIdle(since) if since > turn.opened => Unschedulable::IdleMeanwhile,
            Unschedulable::No if turn.is_turn() && turn.tid == 0 => Unschedulable::IdleMeanwhile,
            known => known,
        }
    }

    /// Whether the culprit is something other than the turn's thread.
    pub(crate) fn is_kept_away(self) -> bool {
        !matches!(
            self,
            Unschedulable::No
                | Unschedulable::Perhaps(_)
                | Unschedulable::LeavesIdle(_)
                | Unschedulable::IdleMeanwhile
        )
    }

    /// The culprit of the turn, if it is not its thread.
    pub(crate) fn culprit(self, turn: &Frame, naming: &Naming<'_>) -> Option<Culprit> {
        let verdict = |verdict| Some(Subject::verdict(verdict).into());
        match self {
            Unschedulable::No | Unschedulable::Perhaps(_) => None,
            Unschedulable::LeavesIdle(_) => Some(idle_exit()),
            Unschedulable::IdleMeanwhile => verdict(Verdict::IdleMeanwhile),
            Unschedulable::RealTime => {
                Some(Subject::Throttle(naming.resolver.task(&naming.task(turn))).into())
            }
            Unschedulable::Deadline => verdict(Verdict::DeadlineBudget),
            Unschedulable::Yielded => verdict(Verdict::YieldedPeriod),
            Unschedulable::Idle => verdict(Verdict::RunnableIdle),
            Unschedulable::Stopped(by, since) => Some(stopped(
                by,
                naming.victim,
                since,
                naming.senders,
                naming.resolver,
            )),
            Unschedulable::Asleep => verdict(Verdict::AsleepInKernel),
        }
    }

    /// Evidence and confidence of the verdict on such a turn; `None` if the turn's own apply.
    pub(crate) fn basis(self) -> Option<(Evidence, Confidence)> {
        match self {
            Unschedulable::No
            | Unschedulable::Perhaps(_)
            | Unschedulable::LeavesIdle(_)
            | Unschedulable::RealTime => None,
            Unschedulable::Deadline | Unschedulable::Stopped(..) => {
                Some((Evidence::LeavingState, Confidence::High))
            }
            Unschedulable::Yielded => Some((Evidence::LeavingState, Confidence::Medium)),
            Unschedulable::Asleep | Unschedulable::Idle => {
                Some((Evidence::LeavingState, Confidence::Low))
            }
            Unschedulable::IdleMeanwhile => Some((Evidence::SwitchRecords, Confidence::Low)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::SchedClass;

    const VICTIM: i32 = 7;
    const FAIR: i16 = 120;
    const STOPPED: u16 = 4;

    /// A thread's turn from `at` on; `left`: the state in which the victim left the CPU for it.
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
    fn kept(from: u64, turns: &[Frame], waits: &[u64], spins: bool) -> Vec<Unschedulable> {
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
        use Unschedulable::{Deadline, Idle, No, Perhaps, RealTime};
        // Deadline, the most and the least urgent real-time thread, and fair ones.
        let others = [-1, 0, 99, 100, 139];
        const SINCE: Ticks = Ticks(5);
        for (victim, beside_idle, beside_others) in [
            (Frame::NO_PRIORITY, No, [No; 5]),
            (-1, Deadline, [No, Deadline, Deadline, Deadline, Deadline]),
            (0, RealTime, [No, No, No, RealTime, RealTime]),
            (99, RealTime, [No, No, No, RealTime, RealTime]),
            (100, Idle, [Perhaps(SINCE); 5]),
            (139, Idle, [Perhaps(SINCE); 5]),
        ] {
            assert_eq!(
                by_class(victim, SINCE, false, &turn(0, 0, FAIR, None)),
                beside_idle,
                "{victim}"
            );
            let found =
                others.map(|other| by_class(victim, SINCE, false, &turn(0, 8, other, None)));
            assert_eq!(
                found,
                beside_others,
                "{victim} {:?}",
                SchedClass::of_priority(victim.into())
            );
        }
    }

    #[test]
    fn a_switch_describes_the_victim_until_it_runs_again() {
        use Unschedulable::{Asleep, No, Perhaps, Stopped};
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
        // The bit above the states marks a preempted thread.
        for runnable in [0, 0x100] {
            assert_eq!(
                kept(0, &turns(runnable), &[], false),
                [No, Perhaps(Ticks(100)), Perhaps(Ticks(100)), No, No]
            );
        }
        for (spins, reported) in [(false, No), (true, Asleep)] {
            assert_eq!(
                kept(0, &turns(1), &[], spins),
                [No, reported, reported, No, No]
            );
        }
        for spins in [false, true] {
            let by = Stopped(StoppedBy::Signal, Ticks(100));
            assert_eq!(kept(0, &turns(STOPPED), &[], spins), [No, by, by, No, No]);
        }
        // Time without a known thread is no thread's turn.
        let mut unrecorded = turns(0);
        unrecorded[2] = Frame::nobody(crate::occupancy::Class::Unrecorded, Ticks(200));
        let perhaps = Perhaps(Ticks(100));
        assert_eq!(kept(0, &unrecorded, &[], false), [No, perhaps, No, No, No]);
    }

    #[test]
    fn a_stop_that_was_over_before_the_window_began_is_none() {
        let stopped = |woken: u64| {
            let turns = [turn(100, 8, FAIR, Some(STOPPED)), turn(500, 9, FAIR, None)];
            kept(400, &turns, &[woken], false)
                .iter()
                .any(|kept| kept.is_kept_away())
        };
        assert_eq!([99, 100, 400, 401].map(stopped), [true, false, false, true]);
    }

    #[test]
    fn an_idle_cpu_is_a_riddle_from_a_millisecond_after_the_wake_up() {
        use Unschedulable::{Idle, LeavesIdle, No, Perhaps};
        let known = 1000 + ON_ITS_WAY.0;
        let turns = |tid| {
            [800, 900, 1000, known - 1, known].map(|at| Frame {
                end: Ticks(if at == 800 { 900 } else { at + 500 }),
                ..turn(at, tid, FAIR, None)
            })
        };
        let leaves = LeavesIdle(Ticks(1000));
        assert_eq!(
            kept(0, &turns(0), &[1000], false),
            [No, leaves, leaves, leaves, Idle]
        );
        let perhaps = Perhaps(Ticks(1000));
        assert_eq!(
            kept(0, &turns(8), &[1000], false),
            [No, perhaps, perhaps, perhaps, perhaps]
        );
        // It was already runnable.
        let turns = [
            turn(900, 8, FAIR, Some(0)),
            turn(1000, 0, FAIR, None),
            turn(1001, 8, FAIR, None),
        ];
        let perhaps = Perhaps(Ticks(900));
        assert_eq!(kept(0, &turns, &[1000], false), [perhaps, Idle, perhaps]);
        // Of several wake-ups the first counts.
        let turns = [turn(known, 0, FAIR, None)];
        assert_eq!(kept(0, &turns, &[1000, 2000], false), [Idle]);
        assert_eq!(kept(0, &turns, &[1001], false), [LeavesIdle(Ticks(1001))]);
    }
}
