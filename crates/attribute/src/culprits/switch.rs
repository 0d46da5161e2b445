//! What switching contexts costs by itself, up to the cost measured on this machine.

use super::culprit;
use jitterscope_model::{Culprit, CulpritKind};

/// The scheduler's own path to and from another thread.
pub(crate) fn context_switch() -> Culprit {
    culprit(CulpritKind::Switch, "context switch", "scheduler path beside sched_switch")
}
