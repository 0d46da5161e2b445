//! The kinds of culprit, one file each, and the table of them.
//!
//! Which records open and close a frame is [`occupancy`](crate::occupancy)'s affair; a [`Kind`] says what the
//! frame rests on, and who is to blame for it.

mod exception;
mod idle;
mod ipi;
mod irq;
mod kworker;
mod loss;
mod nmi;
mod nobody;
mod origin;
mod outside;
mod softirq;
mod stopped;
mod switch;
mod thread;
mod timer;
mod withheld;

use crate::bandwidth::Bandwidth;
use crate::lexicon::Lexicon;
use crate::occupancy::{Class, Frame, NameId, NameTable, Outcome};
use crate::senders::{Senders, Trigger};
use jitterscope_model::{Comm, CpuId, Culprit, Evidence, Name, Subject, TaskRef};

pub(crate) use idle::idle_exit;
pub(crate) use loss::lost;
pub(crate) use nobody::unrecorded;
pub(crate) use origin::Origin;
pub(crate) use outside::{EdgeVerdict, Host, OutsideQuestion, edge, late_interrupt, unseen};
pub(crate) use stopped::{stopped, stopped_by};
pub(crate) use switch::context_switch;
pub(crate) use timer::local_timer;
pub(crate) use withheld::{Waits, Withheld, WithheldTurns, quota_beside_idle, withheld};

/// What frames of one class are, to whom asks for a name.
pub(crate) struct Kind {
    /// The tracepoints that it rests on, for the evidence column.
    pub(crate) evidence: Evidence,
    /// What it was.
    subject: fn(&Frame, &Naming<'_>) -> Subject,
    /// Who triggered it.
    trigger: fn(&Frame, &Naming<'_>) -> Option<Trigger>,
}

/// Of kinds that are triggered by nobody in particular.
fn by_itself(_: &Frame, _: &Naming<'_>) -> Option<Trigger> {
    None
}

/// What the kernel's own trace calls a thread whose name it does not know.
const UNNAMED: &str = "<...>";

/// What naming a frame may look at.
#[derive(Clone, Copy)]
pub(crate) struct Naming<'a> {
    /// The CPU of the frame.
    pub(crate) cpu: CpuId,
    /// Thread id of the victim.
    pub(crate) victim: i32,
    pub(crate) names: &'a NameTable,
    pub(crate) senders: &'a Senders,
    pub(crate) lexicon: &'a dyn Lexicon,
    pub(crate) bandwidth: &'a Bandwidth,
    /// The frame stands for many of its kind: one sender would be named for all.
    pub(crate) folded: bool,
}

impl Naming<'_> {
    /// A thread as its turn's records name it; by its id where they do not.
    pub(crate) fn task(&self, frame: &Frame) -> TaskRef {
        let comm = self.names.comm(frame.named());
        let asked = || {
            self.lexicon
                .comm(frame.tid)
                .map_or(Comm::new(UNNAMED), |name| Comm::new(&name))
        };
        TaskRef {
            tid: frame.tid,
            comm: comm.unwrap_or_else(asked),
            prio: frame.priority().into(),
        }
    }

    /// The text of an interrupt's or vector's name.
    fn text(&self, id: u64) -> Name {
        let known = u32::try_from(id)
            .ok()
            .and_then(|id| self.names.name(NameId(id)));
        known.cloned().unwrap_or_else(|| "unknown".into())
    }
}

/// The kind of a class.
pub(crate) fn kind(class: Class) -> &'static Kind {
    match class {
        Class::Turn => &thread::TURN,
        Class::Unrecorded => &nobody::UNRECORDED,
        Class::NotSeen => &nobody::NOT_SEEN,
        Class::Lost => &loss::LOST,
        Class::Work => &kworker::WORK,
        Class::Softirq => &softirq::SOFTIRQ,
        Class::HrtimerFunction => &timer::HIGH_RESOLUTION,
        Class::WheelFunction => &timer::WHEEL,
        Class::Fault => &exception::FAULT,
        Class::MachineCheck => &exception::MACHINE_CHECK,
        Class::LocalTimer => &timer::LOCAL_TIMER,
        Class::Vector => &ipi::VECTOR,
        Class::Call => &ipi::FUNCTION,
        Class::Irq => &irq::HANDLER,
        Class::Nmi => &nmi::HANDLER,
        Class::Idle => &idle::STATE,
    }
}

/// Whom to blame for a frame. A frame whose exit was never seen is blamed on nobody: its extent is unknown. Not
/// so a thread's: no two have the CPU at once, so it had it until the victim did, or another that left no
/// record. Kernels have been met that record no switch away from some threads.
pub(crate) fn culprit_of(frame: &Frame, naming: &Naming<'_>) -> Culprit {
    match is_seen(frame) {
        true => culprit_while_open(frame, naming),
        false => outside::left_open(&kind(frame.class).evidence),
    }
}

/// Whether the end of a frame was seen, or need not be.
pub(crate) fn is_seen(frame: &Frame) -> bool {
    frame.outcome == Outcome::Closed || frame.class.is_endless() || frame.class.is_root()
}

/// Whom to blame for a frame that is known to go on beyond what is looked at.
pub(crate) fn culprit_while_open(frame: &Frame, naming: &Naming<'_>) -> Culprit {
    let of = kind(frame.class);
    let subject = (of.subject)(frame, naming);
    // Of a folded frame it is asked for all the same, and after the subject: names that are asked for stay known.
    let sender =
        (of.trigger)(frame, naming).map(|trigger| naming.senders.sender(trigger, naming.lexicon));
    Culprit {
        sender: sender.filter(|_| !naming.folded),
        subject,
    }
}

/// Who triggered a frame, as far as its culprit says so.
fn told_trigger(frame: &Frame, naming: &Naming<'_>) -> Option<Trigger> {
    if naming.folded {
        None
    } else {
        (kind(frame.class).trigger)(frame, naming)
    }
}
