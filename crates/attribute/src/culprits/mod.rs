//! The kinds of culprit, one file each, and the table of them.
//!
//! [`occupancy`](crate::occupancy) decides which records open and close a frame; a [`Kind`] states the frame's evidence
//! and its culprit.

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
mod quota;
mod softirq;
mod stopped;
mod switch;
mod thread;
mod timer;
mod withheld;

use crate::name_resolver::NameResolver;
use crate::occupancy::{Class, Frame, NameId, NameTable, Outcome};
use crate::senders::{Senders, Trigger};
use jitterscope_model::{Comm, CpuId, Culprit, Evidence, Name, Quota, Subject, TaskRef};

pub(crate) use idle::idle_exit;
pub(crate) use loss::no_verdict;
pub(crate) use nobody::unrecorded;
pub(crate) use origin::Origin;
pub(crate) use outside::{EdgeVerdict, Host, OutsideQuestion, edge, late_interrupt, unseen};
pub(crate) use quota::quota_evidence;
pub(crate) use stopped::{stopped, stopped_by};
pub(crate) use switch::context_switch;
pub(crate) use timer::local_timer;
pub(crate) use withheld::{Unschedulable, UnschedulableTurns, Waits, withheld};

/// How to name frames of one class.
pub(crate) struct Kind {
    /// The tracepoints behind it, for the evidence column.
    pub(crate) evidence: Evidence,
    subject: fn(&Frame, &Naming<'_>) -> Subject,
    /// Its trigger, if known.
    trigger: fn(&Frame, &Naming<'_>) -> Option<Trigger>,
}

/// For kinds without a particular trigger.
fn by_itself(_: &Frame, _: &Naming<'_>) -> Option<Trigger> {
    None
}

/// The kernel's own word for a thread without a known name.
const UNNAMED: &str = "<...>";

/// The data for naming a frame.
#[derive(Clone, Copy)]
pub(crate) struct Naming<'a> {
    /// The CPU of the frame.
    pub(crate) cpu: CpuId,
    /// Thread id of the victim.
    pub(crate) victim: i32,
    pub(crate) names: &'a NameTable,
    pub(crate) senders: &'a Senders,
    pub(crate) resolver: &'a dyn NameResolver,
    /// The quotas that throttled time of the window refers to.
    pub(crate) quotas: &'a [Quota],
    /// Whether the frame sums many of its kind, which have different senders.
    pub(crate) folded: bool,
}

impl Naming<'_> {
    /// A thread, named by its turn's records, or else by its id.
    pub(crate) fn task(&self, frame: &Frame) -> TaskRef {
        let comm = self.names.comm(frame.named());
        let asked = || {
            self.resolver
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

pub(crate) fn kind(class: Class) -> &'static Kind {
    match class {
        Class::Turn => &thread::TURN,
        Class::Unrecorded => &nobody::UNRECORDED,
        Class::NotSeen => &nobody::NOT_SEEN,
        Class::Lost => &loss::LOST,
        Class::Throttled => &quota::THROTTLED,
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

/// The culprit of a frame. If its exit was not recorded, it has no culprit, because its extent is unknown. A thread's
/// turn is an exception: only one thread has the CPU at a time, so it had the CPU until the victim did, or until
/// another thread did that left no record. Some kernels record no switch away from some threads.
pub(crate) fn culprit_of(frame: &Frame, naming: &Naming<'_>) -> Culprit {
    match is_seen(frame) {
        true => culprit_while_open(frame, naming),
        false => outside::left_open(&kind(frame.class).evidence),
    }
}

/// Whether a frame's end was recorded, or needs no record.
pub(crate) fn is_seen(frame: &Frame) -> bool {
    frame.outcome == Outcome::Closed || frame.class.is_endless() || frame.class.is_root()
}

/// The culprit of a frame that is known to continue after the window.
pub(crate) fn culprit_while_open(frame: &Frame, naming: &Naming<'_>) -> Culprit {
    let of = kind(frame.class);
    let subject = (of.subject)(frame, naming);
    // Also called for a folded frame, and after the subject, because a lookup keeps a name in the cache.
    let sender =
        (of.trigger)(frame, naming).map(|trigger| naming.senders.sender(trigger, naming.resolver));
    Culprit {
        sender: sender.filter(|_| !naming.folded),
        subject,
    }
}

/// The trigger of a frame, if its culprit has one.
fn known_trigger(frame: &Frame, naming: &Naming<'_>) -> Option<Trigger> {
    if naming.folded {
        None
    } else {
        (kind(frame.class).trigger)(frame, naming)
    }
}
