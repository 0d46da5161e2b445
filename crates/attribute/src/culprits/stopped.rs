//! A victim that is stopped.

use crate::name_resolver::NameResolver;
use crate::senders::Senders;
use jitterscope_model::{Culprit, StoppedBy, Subject, Ticks, Verdict};

/// `__TASK_STOPPED` and `__TASK_TRACED`.
const STOPPED: u16 = 0x4;
const TRACED: u16 = 0x8;

/// What stopped a thread that left its CPU in this state; `None` if nothing did.
pub(crate) fn stopped_by(state: u16) -> Option<StoppedBy> {
    match state {
        STOPPED => Some(StoppedBy::Signal),
        TRACED => Some(StoppedBy::Tracer),
        _ => None,
    }
}

/// The culprit of a stop that began at `since`. A signal sent to an already stopped thread is not the cause.
pub(crate) fn stopped(
    by: StoppedBy,
    victim: i32,
    since: Ticks,
    senders: &Senders,
    resolver: &dyn NameResolver,
) -> Culprit {
    match by {
        StoppedBy::Signal => Culprit {
            subject: Subject::verdict(Verdict::StoppedBySignal),
            sender: senders.stopper(victim, since, resolver),
        },
        StoppedBy::Freezer => Subject::verdict(Verdict::Frozen).into(),
        StoppedBy::Tracer => Subject::verdict(Verdict::StoppedByTracer).into(),
    }
}
