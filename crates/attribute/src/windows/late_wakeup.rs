//! A late wake-up, split into what it was late for.
//!
//! The victim sleeps when its stall begins, so the question is not who took the CPU away but who did not
//! give it: the timer that fired late, an idle state that took its time to leave, an interrupt in
//! between, a thread that is more urgent or simply was there first, and the kernel's own way from the
//! wake-up to the victim's next instruction.

use crate::culprits::{self, Naming, Waits, Withheld, WithheldTurns};
use crate::occupancy::{Class, Frame, Outcome, Record, Window};
use jitterscope_model::{
    About, Attribution, Confidence, Culprit, CulpritKind, Evidence, Meanwhile, Part, Phase,
    Placement, Stall, Subject, TickRate, Ticks, Verdict,
};

/// The victim is woken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Woken {
    pub(crate) at: Ticks,
    /// The victim's priority, as the kernel counts it.
    pub(crate) prio: i32,
}

impl Woken {
    /// From then on it waits for its CPU.
    pub(crate) fn waits(&self) -> Waits {
        Waits {
            since: self.at,
            prio: i16::try_from(self.prio).unwrap_or(Frame::NO_PRIORITY),
        }
    }
}

/// Splits a late wake-up: `stall` reaches from the deadline to the wake-up, `window` is its CPU's. The parts
/// are in order of first appearance and sum to the stall's length exactly.
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
        window,
        found: Vec::new(),
    };
    let changes = changes(stall, window, wakings);
    let mut changes = changes.iter().peekable();
    let mut victim = Victim {
        woken: false,
        since: stall.start,
        prio: None,
    };
    for slice in &window.slices {
        let occupant = Occupant::of(window, slice.frame, slice.ended.is_none(), &withheld);
        while let Some(change) = changes.next_if(|change| change.at <= slice.start) {
            victim = change.to(victim);
        }
        while let Some(change) = changes.next_if(|change| change.at < slice.end) {
            parts.until(change.at, &occupant, victim, naming);
            victim = change.to(victim);
        }
        parts.until(slice.end, &occupant, victim, naming);
    }
    Attribution {
        stall: stall.id,
        parts: parts.found,
    }
}

/// What is known of the victim at one instant.
#[derive(Clone, Copy)]
struct Victim {
    woken: bool,
    /// Since when.
    since: Ticks,
    prio: Option<i32>,
}

/// A moment from which the victim is woken, or sleeps.
struct Change {
    at: Ticks,
    woken: bool,
    prio: Option<i32>,
}

impl Change {
    fn to(&self, before: Victim) -> Victim {
        let since = if self.woken == before.woken {
            before.since
        } else {
            self.at
        };
        Victim {
            woken: self.woken,
            since,
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
            // If it went to sleep, what wakes it is still to come.
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

/// Who has the CPU.
enum Occupant<'a> {
    /// An interrupt, or what it runs.
    Interrupt(&'a Frame),
    /// The idle thread, in this state, until then.
    Idle(Option<u64>, Ticks),
    /// Somebody, or nobody, for the victim was kept from running.
    Withheld(&'a Frame, Withheld),
    /// The idle thread or who came after it: no record tells; what is known of it.
    Unrecorded(&'a Frame),
    /// A thread's turn, and the frame inside that names it: a worker's item.
    Thread(&'a Frame, &'a Frame),
    NotSeen,
}

impl<'a> Occupant<'a> {
    /// `last`: the window ends with it.
    fn of(
        window: &'a Window,
        innermost: u32,
        last: bool,
        withheld: &WithheldTurns,
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
            Class::Turn if !matches!(kept, Withheld::No | Withheld::Perhaps) => {
                Occupant::Withheld(turn, kept)
            }
            Class::Turn if turn.tid != 0 => {
                let mut inside = window.chain(innermost);
                let item = inside.find(|at| frame(*at).class == Class::Work);
                let item = item.or_else(|| window.named_by(root));
                Occupant::Thread(turn, item.map_or(turn, frame))
            }
            // The victim runs in the end. Kernels have been met that record no way out of idle.
            Class::Turn if last && turn.outcome == Outcome::Open => Occupant::Unrecorded(turn),
            Class::Turn => {
                let state = window
                    .chain(innermost)
                    .map(frame)
                    .find(|frame| frame.class == Class::Idle);
                Occupant::Idle(state.map(|state| state.key), turn.end)
            }
            Class::Unrecorded => Occupant::Unrecorded(turn),
            _ => Occupant::NotSeen,
        }
    }

    fn verdict(&self, victim: Victim, naming: &Naming<'_>, parts: &Parts<'_>) -> (Phase, Culprit) {
        let window = parts.window;
        let (phase, subject) = match (self, victim.woken) {
            (Occupant::Withheld(turn, kept), _) => {
                let culprit = kept.culprit(turn, window, naming);
                return (Phase::Withheld, culprit.unwrap_or_else(culprits::idle_exit));
            }
            (Occupant::Idle(_, until), true) => {
                let waited = until.since(victim.since);
                match culprits::quota_beside_idle(waited, window, naming, parts.rate) {
                    Some(quota) => (Phase::Withheld, Subject::Quota(quota)),
                    None => (Phase::Dispatch, Subject::verdict(Verdict::LeavingIdle)),
                }
            }
            _ => self.plain(victim, naming),
        };
        (phase, subject.into())
    }

    /// What there is to say where the victim was not kept from running.
    fn plain(&self, victim: Victim, naming: &Naming<'_>) -> (Phase, Subject) {
        match (self, victim.woken) {
            (Occupant::Interrupt(frame), _) if frame.class == Class::LocalTimer => {
                // Which function it runs is not looked at.
                (Phase::Interrupt, culprits::local_timer(None))
            }
            (Occupant::Interrupt(frame), _) => (
                Phase::Interrupt,
                culprits::culprit_while_open(frame, naming).subject,
            ),
            (Occupant::Thread(turn, _), _) if turn.tid == naming.victim => {
                (Phase::Dispatch, Subject::verdict(Verdict::ReturnToThread))
            }
            (Occupant::Idle(..) | Occupant::Withheld(..), true) => {
                (Phase::Dispatch, Subject::verdict(Verdict::LeavingIdle))
            }
            (Occupant::Idle(None, _) | Occupant::Withheld(..), false) => idle_exit(About::Nothing),
            (Occupant::Idle(Some(Record::IDLE_ENDS), _), false) => {
                late_timer(About::Meanwhile(Meanwhile::IdleEnded))
            }
            (Occupant::Idle(Some(state), _), false) => {
                idle_exit(u32::try_from(*state).map_or(About::Nothing, About::IdleState))
            }
            (Occupant::Unrecorded(frame), true) => {
                (Phase::RunQueue, culprits::unrecorded(frame, naming))
            }
            (Occupant::Unrecorded(_), false) => late_timer(About::Meanwhile(Meanwhile::Unrecorded)),
            (Occupant::Thread(turn, item), true) => {
                let prio = turn.priority();
                let urgent = victim.prio.is_some_and(|own| i32::from(prio) < own);
                let urgent = urgent && prio != Frame::NO_PRIORITY;
                let phase = if urgent {
                    Phase::HigherPriority
                } else {
                    Phase::RunQueue
                };
                (phase, culprits::culprit_while_open(item, naming).subject)
            }
            (Occupant::Thread(turn, item), false) => late_timer(About::Meanwhile(
                match culprits::culprit_while_open(item, naming).subject {
                    Subject::Work(work) if work.function.is_some() => Meanwhile::Worked(work),
                    _ => Meanwhile::Ran(naming.lexicon.task(&naming.task(turn))),
                },
            )),
            (Occupant::NotSeen, true) => (Phase::RunQueue, Subject::verdict(Verdict::RunQueueWait)),
            (Occupant::NotSeen, false) => late_timer(About::Nothing),
        }
    }
}

struct Parts<'a> {
    start: Ticks,
    from: Ticks,
    rate: TickRate,
    window: &'a Window,
    found: Vec<Part>,
}

impl Parts<'_> {
    /// The time since the last call belongs to what was going on.
    fn until(&mut self, to: Ticks, occupant: &Occupant<'_>, victim: Victim, naming: &Naming<'_>) {
        if to <= self.from {
            return;
        }
        // Differences of rounded sums, so that the parts sum to the rounded whole.
        let elapsed = |at: Ticks| self.rate.nanos(at.since(self.start));
        let net = elapsed(to).saturating_sub(elapsed(self.from));
        self.from = to;
        let (phase, culprit) = occupant.verdict(victim, naming, self);
        let same =
            |part: &&mut Part| part.phase.as_ref() == Some(&phase) && *part.culprit == culprit;
        if let Some(known) = self.found.iter_mut().find(same) {
            known.net += net;
            known.gross += net;
            return;
        }
        let known = !matches!(occupant, Occupant::NotSeen | Occupant::Unrecorded(_));
        let confidence = match (&phase, known) {
            (Phase::LateTimer | Phase::RunQueue, false) => Confidence::Low,
            (Phase::LateTimer | Phase::IdleExit, _) => Confidence::Medium,
            (Phase::Withheld, _) if culprit.kind() == CulpritKind::Quota => Confidence::Medium,
            (Phase::Withheld, _) if culprit.kind() == CulpritKind::Unresolved => Confidence::Low,
            _ => Confidence::High,
        };
        let placement = if phase == Phase::Dispatch {
            Placement::Trail
        } else {
            Placement::Inside
        };
        let evidence = match culprit.kind() {
            CulpritKind::Quota => Evidence::QuotaCount,
            _ => Evidence::WakeupRecords,
        };
        let part = Part::inside(culprit, net, evidence).in_phase(phase);
        self.found.push(Part {
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
