//! What had the CPU that a thread waited for.

use super::Named;
use crate::culprits;
use crate::occupancy::{Class, Outcome};
use jitterscope_model::Culprit;
use std::sync::Arc;

/// Like other windows, with two exceptions: a turn still open at the end has its culprit; and the idle thread, while
/// another thread was runnable, counts as idle exit, unless the CPU began to idle while the thread was runnable.
pub(super) fn culprit(owner: u32, named: &Named<'_>) -> Arc<Culprit> {
    let frame = named.frame(owner);
    if frame.is_turn() && frame.tid == 0 && !named.is_kept_away(owner) {
        return named.share(culprits::idle_exit());
    }
    if frame.outcome == Outcome::Open && frame.class != Class::Turn {
        return named.share(named.culprit_while_open(owner));
    }
    named.culprit(owner)
}
