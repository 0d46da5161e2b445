//! The cost of the context switch itself, up to the measured cost on this machine.

use jitterscope_model::{Culprit, Subject, Verdict};

/// The scheduler's own path to and from another thread.
pub(crate) fn context_switch() -> Culprit {
    Subject::verdict(Verdict::ContextSwitch).into()
}
