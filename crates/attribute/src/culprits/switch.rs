//! What switching contexts costs by itself, up to the cost measured on this machine.

use jitterscope_model::{Culprit, Subject, Verdict};

/// The scheduler's own path to and from another thread.
pub(crate) fn context_switch() -> Culprit {
    Subject::verdict(Verdict::ContextSwitch).into()
}
