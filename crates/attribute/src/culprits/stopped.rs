//! A victim that is not let run at all.

use crate::lexicon::Lexicon;
use crate::senders::Senders;
use jitterscope_model::{Culprit, StoppedBy, Subject, Ticks, Verdict};

/// `__TASK_STOPPED` and `__TASK_TRACED`.
const STOPPED: u16 = 0x4;
const TRACED: u16 = 0x8;

/// What has stopped a thread that left its CPU in this state; `None` where nothing has.
pub(crate) fn stopped_by(state: u16) -> Option<StoppedBy> {
    match state {
        STOPPED => Some(StoppedBy::Signal),
        TRACED => Some(StoppedBy::Tracer),
        _ => None,
    }
}

/// Whom to blame for a stop that began at `since`. A signal for a thread that is stopped already is not what
/// stopped it.
pub(crate) fn stopped(
    by: StoppedBy,
    victim: i32,
    since: Ticks,
    senders: &Senders,
    lexicon: &dyn Lexicon,
) -> Culprit {
    match by {
        StoppedBy::Signal => Culprit {
            subject: Subject::verdict(Verdict::StoppedBySignal),
            sender: senders.stopper(victim, since, lexicon),
        },
        StoppedBy::Tracer => Subject::verdict(Verdict::StoppedByTracer).into(),
    }
}
