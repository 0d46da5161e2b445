//! A late wake-up, split by what caused the lateness.
//!
//! The victim sleeps when its stall begins, so the question is not what took the CPU from it, but what delayed it: the
//! timer that fired late, an idle state with a slow exit, an interrupt in between, a thread with higher priority or an
//! earlier turn, and the kernel's own path from the wake-up to the victim's next instruction.

use crate::culprits::{self, Naming, Unschedulable, UnschedulableTurns, Waits};
use crate::occupancy::{Class, Frame, Outcome, Record, Slice, Window};
use crate::part_sums::turns;
use jitterscope_model::{
    About, Attribution, Confidence, Culprit, Evidence, Meanwhile, Part, Phase, Placement, Stall,
    Subject, TickRate, Ticks, Verdict,
};

/// A wake-up of the victim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Woken {
    pub(crate) at: Ticks,
    /// The victim's priority, as the kernel counts it.
    pub(crate) prio: i32,
}

impl Woken {
    /// The wait for its CPU that begins then.
    pub(crate) fn waits(&self) -> Waits {
        Waits {
            since: self.at,
            prio: i16::try_from(self.prio).unwrap_or(Frame::NO_PRIORITY),
        }
    }
}

/// Splits a late wake-up. `stall` goes from the deadline to the wake-up, `window` is its CPU's. The parts are in order
/// of first appearance and sum to the stall's length exactly.
pub(crate) fn split(
    stall: &Stall,
    window: &Window,
    wakings: &[Woken],
    naming: &Naming<'_>,
    rate: TickRate,
) -> Attribution {
    let waits: Vec<Waits> = wakings.iter().map(Woken::waits).collect();
    let withheld = culprits::withheld(window, stall.victim.tid, &waits, false, rate);
    let mut parts = Parts {
        from: stall.start,
        rate,
        start: stall.start,
        last: None,
        found: Vec::new(),
    };
    let changes = changes(stall, window, wakings);
    let mut changes = changes.iter().peekable();
    let mut victim = Victim {
        woken: false,
        prio: None,
    };
    for slice in &window.slices {
        let occupant = Occupant::of(window, slice.frame, slice.ended.is_none(), &withheld);
        while let Some(change) = changes.next_if(|change| change.at <= slice.start) {
            victim = change.to(victim);
        }
        while let Some(change) = changes.next_if(|change| change.at < slice.end) {
            parts.until(change.at, slice, &occupant, victim, naming);
            victim = change.to(victim);
        }
        parts.until(slice.end, slice, &occupant, victim, naming);
    }
    Attribution {
        stall: stall.id,
        parts: parts.found,
    }
}

/// The state of the victim at one instant.
#[derive(Clone, Copy)]
struct Victim {
    woken: bool,
    prio: Option<i32>,
}

impl Victim {
    /// Whether the scheduler prefers the thread of a turn.
    fn is_less_urgent_than(&self, turn: &Frame) -> bool {
        let prio = turn.priority();
        let urgent = self.prio.is_some_and(|own| i32::from(prio) < own);
        urgent && prio != Frame::NO_PRIORITY
    }
}

/// A moment when the victim is woken, or goes to sleep.
struct Change {
    at: Ticks,
    woken: bool,
    prio: Option<i32>,
}

impl Change {
    fn to(&self, before: Victim) -> Victim {
        Victim {
            woken: self.woken,
            prio: self.prio.or(before.prio),
        }
    }
}

/// When the victim was woken, put on the CPU, or taken from it.
fn changes(stall: &Stall, window: &Window, wakings: &[Woken]) -> Vec<Change> {
    let tid = stall.victim.tid;
    let known = |prio: i16| Some(i32::from(prio)).filter(|_| prio != Frame::NO_PRIORITY);
    let mut changes = Vec::new();
    for turn in window.frames.iter().filter(|frame| frame.is_turn()) {
        if let Some(before) = turn.before().filter(|before| before.tid == tid) {
            // If it went to sleep, its wake-up is still to come.
            let woken = before.state & TASK_STATES == 0;
            changes.push(Change {
                at: turn.start,
                woken,
                prio: known(before.prio),
            });
        }
        if turn.tid == tid {
            changes.push(Change {
                at: turn.start,
                woken: true,
                prio: known(turn.priority()),
            });
        }
    }
    changes.extend(wakings.iter().map(|woken| Change {
        at: woken.at,
        woken: true,
        prio: Some(woken.prio),
    }));
    changes.sort_by_key(|change| change.at);
    changes
}

/// Sleep and stop states of a switch; the bit above them marks a preempted task, which is runnable.
const TASK_STATES: u16 = 0xff;

/// What has the CPU.
enum Occupant<'a> {
    /// An interrupt, or a function that it runs.
    Interrupt(&'a Frame),
    /// The idle thread, in this state.
    Idle(Option<u64>),
    /// Another thread or idle, because a quota kept the victim from running.
    Throttled(&'a Frame),
    /// Another thread or idle, because the victim was kept from running.
    Unschedulable(&'a Frame, Unschedulable),
    /// The idle thread or the thread after it, because no record tells which. Holds the known facts.
    Unrecorded(&'a Frame),
    /// A thread's turn, and the frame inside that names it: a worker's item.
    Thread(&'a Frame, &'a Frame),
    NotSeen,
}

impl<'a> Occupant<'a> {
    /// `last`: whether the window ends with it.
    fn of(
        window: &'a Window,
        innermost: u32,
        last: bool,
        withheld: &UnschedulableTurns,
    ) -> Occupant<'a> {
        let frame = |index| window.frame(index);
        let mut chain = window.chain(innermost).map(frame);
        let interrupts = |frame: &&Frame| {
            frame.class.is_vector()
                || matches!(frame.class, Class::Irq | Class::Softirq | Class::Nmi)
        };
        if let Some(interrupt) = chain.find(interrupts) {
            return Occupant::Interrupt(interrupt);
        }
        let root = window.root(innermost);
        let turn = frame(root);
        let kept = withheld.at(root);
        match turn.class {
            Class::Throttled => Occupant::Throttled(turn),
            Class::Turn if kept.is_kept_away() => Occupant::Unschedulable(turn, kept),
            Class::Turn if turn.tid != 0 => {
                let mut inside = window.chain(innermost);
                let item = inside.find(|at| frame(*at).class == Class::Work);
                let item = item.or_else(|| window.named_by(root));
                Occupant::Thread(turn, item.map_or(turn, frame))
            }
            // The victim runs at the end. Some kernels record no idle exit.
            Class::Turn if last && turn.outcome == Outcome::Open => Occupant::Unrecorded(turn),
            Class::Turn => {
                let state = window
                    .chain(innermost)
                    .map(frame)
                    .find(|frame| frame.class == Class::Idle);
                Occupant::Idle(state.map(|state| state.key))
            }
            Class::Unrecorded => Occupant::Unrecorded(turn),
            _ => Occupant::NotSeen,
        }
    }

    fn verdict(&self, victim: Victim, naming: &Naming<'_>) -> (Phase, Culprit) {
        match self {
            Occupant::Unschedulable(turn, kept) => {
                let culprit = kept.culprit(turn, naming);
                (Phase::Withheld, culprit.unwrap_or_else(culprits::idle_exit))
            }
            Occupant::Throttled(frame) => {
                (Phase::Withheld, culprits::culprit_while_open(frame, naming))
            }
            // What took the CPU, with its sender.
            Occupant::Interrupt(frame) if frame.class != Class::LocalTimer => (
                Phase::Interrupt,
                culprits::culprit_while_open(frame, naming),
            ),
            Occupant::Thread(turn, item) if victim.woken && turn.tid != naming.victim => {
                let phase = match victim.is_less_urgent_than(turn) {
                    true => Phase::HigherPriority,
                    false => Phase::RunQueue,
                };
                (phase, culprits::culprit_while_open(item, naming))
            }
            _ => {
                let (phase, subject) = self.plain(victim, naming);
                (phase, subject.into())
            }
        }
    }

    /// The verdict if the victim was not kept from running, and no other thread or interrupt had the CPU while it was
    /// ready.
    fn plain(&self, victim: Victim, naming: &Naming<'_>) -> (Phase, Subject) {
        match (self, victim.woken) {
            // Its function does not matter here.
            (Occupant::Interrupt(_), _) => (Phase::Interrupt, culprits::local_timer(None)),
            (Occupant::Thread(turn, _), _) if turn.tid == naming.victim => {
                (Phase::Dispatch, Subject::verdict(Verdict::ReturnToThread))
            }
            (Occupant::Idle(_) | Occupant::Unschedulable(..) | Occupant::Throttled(_), true) => {
                (Phase::Dispatch, Subject::verdict(Verdict::LeavingIdle))
            }
            (
                Occupant::Idle(None) | Occupant::Unschedulable(..) | Occupant::Throttled(_),
                false,
            ) => idle_exit(About::Nothing),
            (Occupant::Idle(Some(Record::IDLE_ENDS)), false) => {
                late_timer(About::Meanwhile(Meanwhile::IdleEnded))
            }
            (Occupant::Idle(Some(state)), false) => {
                idle_exit(u32::try_from(*state).map_or(About::Nothing, About::IdleState))
            }
            (Occupant::Unrecorded(frame), true) => {
                (Phase::RunQueue, culprits::unrecorded(frame, naming))
            }
            (Occupant::Unrecorded(_), false) => late_timer(About::Meanwhile(Meanwhile::Unrecorded)),
            (Occupant::Thread(turn, item), _) => late_timer(About::Meanwhile(
                match culprits::culprit_while_open(item, naming).subject {
                    Subject::Work(work) if work.function.is_some() => Meanwhile::Worked(work),
                    _ => Meanwhile::Ran(naming.resolver.task(&naming.task(turn))),
                },
            )),
            (Occupant::NotSeen, true) => (Phase::RunQueue, Subject::verdict(Verdict::RunQueueWait)),
            (Occupant::NotSeen, false) => late_timer(About::Nothing),
        }
    }
}

struct Parts {
    start: Ticks,
    from: Ticks,
    rate: TickRate,
    /// The index of the part that the time before `from` belongs to.
    last: Option<usize>,
    found: Vec<Part>,
}

impl Parts {
    /// Assigns the time since the last call to the occupant of the current slice.
    fn until(
        &mut self,
        to: Ticks,
        slice: &Slice,
        occupant: &Occupant<'_>,
        victim: Victim,
        naming: &Naming<'_>,
    ) {
        if to <= self.from {
            return;
        }
        // Differences of rounded sums, so that the parts sum to the rounded whole.
        let elapsed = |at: Ticks| self.rate.nanos(at.since(self.start));
        let net = elapsed(to).saturating_sub(elapsed(self.from));
        // A slice counts only once.
        let sums = if self.from <= slice.start {
            slice.sums
        } else {
            0
        };
        self.from = to;
        let (phase, culprit) = occupant.verdict(victim, naming);
        let same = |part: &Part| part.phase.as_ref() == Some(&phase) && *part.culprit == culprit;
        let place = self.found.iter().position(same);
        let goes_on = place.is_some() && place == self.last;
        self.last = Some(place.unwrap_or(self.found.len()));
        if let Some(known) = place.map(|place| &mut self.found[place]) {
            known.net += net;
            known.gross += net;
            known.turns = known.turns.saturating_add(turns(sums, goes_on));
            return;
        }
        let known = !matches!(occupant, Occupant::NotSeen | Occupant::Unrecorded(_));
        let confidence = match (&phase, known) {
            (Phase::LateTimer | Phase::RunQueue, false) => Confidence::Low,
            (Phase::LateTimer | Phase::IdleExit, _) => Confidence::Medium,
            (Phase::Withheld, _) => culprit.kind().confidence(),
            _ => Confidence::High,
        };
        let placement = if phase == Phase::Dispatch {
            Placement::Trail
        } else {
            Placement::Inside
        };
        let evidence = culprits::quota_evidence(culprit.kind());
        let evidence = evidence.unwrap_or(Evidence::WakeupRecords);
        let part = Part::inside(culprit, net, evidence).in_phase(phase);
        self.found.push(Part {
            turns: turns(sums, false),
            placement,
            confidence,
            ..part
        });
    }
}

fn idle_exit(about: About) -> (Phase, Subject) {
    (Phase::IdleExit, Subject::Verdict(Verdict::IdleExit, about))
}

fn late_timer(about: About) -> (Phase, Subject) {
    (
        Phase::LateTimer,
        Subject::Verdict(Verdict::LateTimer, about),
    )
}

#[cfg(test)]
#[path = "late_wakeup_tests.rs"]
mod tests;
