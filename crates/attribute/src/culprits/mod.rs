//! The kinds of culprit, one file each, and the table of them.
//!
//! A [`Rule`] says which record opens a frame of its kind, which closes it, and how the frame is named. A
//! new kind is one new file and one line in [`RULES`].

mod exception;
mod ipi;
mod irq;
mod kworker;
mod loss;
mod nmi;
mod outside;
mod rt_throttle;
mod softirq;
mod switch;
mod thread;
mod timer;

use crate::lexicon::Lexicon;
use crate::senders::Senders;
use crate::timeline::{Frame, Timeline};
use jitterscope_model::{Culprit, CulpritKind, EventKind, Evidence, KernelEvent, Name, Stall, Subject};

pub(crate) use loss::lost;
pub(crate) use nmi::NMI;
pub(crate) use outside::{OutsideQuestion, edge, unseen};
pub(crate) use switch::context_switch;
pub(crate) use thread::{THREAD, subject as thread_subject};

/// How frames of one kind open, close and are named.
#[derive(Debug)]
pub(crate) struct Rule {
    /// The tracepoints that it rests on, for the evidence column.
    pub(crate) evidence: Evidence,
    /// Whether this record opens such a frame.
    pub(crate) opens: fn(&EventKind) -> bool,
    /// Whether the second record closes the frame that the first one opened.
    pub(crate) closes: fn(&KernelEvent, &KernelEvent) -> bool,
    /// There is no exit record: the frame lasts until the next thing that must end it, and its extent is
    /// known only to medium confidence.
    pub(crate) endless: bool,
    /// Such frames count only in the victim's own context: what another thread suffers is that thread's
    /// time.
    pub(crate) victims_only: bool,
    /// Whether the thread that it runs in may be switched out meanwhile, and the frame go on when the
    /// thread does. Hardware interrupts cannot; on PREEMPT_RT softirqs can.
    pub(crate) sleeps: bool,
    /// Whether a frame nested in this one names it: the timer function names the timer interrupt.
    pub(crate) named_by: fn(&Frame) -> bool,
    /// Whom to blame.
    pub(crate) culprit: fn(&Frame, &Scene<'_>) -> Culprit,
}

/// What naming a frame may look at.
pub(crate) struct Scene<'a> {
    pub(crate) stall: &'a Stall,
    pub(crate) timeline: &'a Timeline,
    pub(crate) senders: &'a Senders,
    pub(crate) lexicon: &'a dyn Lexicon,
}

/// Rules that records other than `sched_switch` and `nmi_handler` open. Those two open [`THREAD`] and
/// [`NMI`] frames by themselves, for they say more than "it begins".
const RULES: [&Rule; 8] = [
    &timer::LOCAL_TIMER,
    &timer::FUNCTION,
    &irq::HANDLER,
    &softirq::SOFTIRQ,
    &ipi::VECTOR,
    &ipi::FUNCTION,
    &kworker::WORK,
    &exception::FAULT,
];

/// The rule whose frames this record opens.
pub(crate) fn rule_opened_by(event: &KernelEvent) -> Option<&'static Rule> {
    RULES.into_iter().find(|rule| (rule.opens)(&event.kind))
}

/// Whom to blame for a frame. A frame whose exit was never seen is nobody's: its extent is unknown. Not
/// so a thread's: no two have the CPU at once, so it had it until the victim did, or another that left no
/// record. Kernels have been met that record no switch away from some threads.
pub(crate) fn culprit_of(index: usize, scene: &Scene<'_>) -> Culprit {
    let frame = &scene.timeline.frames[index];
    if !frame.closed && !frame.rule.endless && !frame.is_thread() {
        return outside::left_open(&frame.rule.evidence);
    }
    named(index, scene)
}

/// Whom to blame for a frame that is known to go on beyond what is looked at.
pub(crate) fn culprit_while_open(index: usize, scene: &Scene<'_>) -> Culprit {
    named(index, scene)
}

fn named(index: usize, scene: &Scene<'_>) -> Culprit {
    let frame = &scene.timeline.frames[index];
    let naming_child = scene
        .timeline
        .frames
        .iter()
        .enumerate()
        .filter(|(_, child)| {
            let ended = child.closed || !frame.closed;
            child.parent == Some(index) && ended && (frame.rule.named_by)(child)
        })
        .max_by_key(|(at, child)| (child.gross(), std::cmp::Reverse(*at)));
    match naming_child {
        Some((child, _)) => named(child, scene),
        None => (frame.rule.culprit)(frame, scene),
    }
}

/// No frame names another of this kind.
pub(crate) fn by_none(_: &Frame) -> bool {
    false
}

/// A frame that was not opened by what its rule is for: no table of rules makes one.
fn unnamed(kind: CulpritKind) -> Culprit {
    Subject::Unknown { kind: kind.as_str().into(), name: "unknown".into(), detail: Name::default() }.into()
}
