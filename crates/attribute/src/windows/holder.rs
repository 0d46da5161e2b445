//! Who had the CPU for which a thread waited.

use super::Named;
use crate::culprits;
use crate::occupancy::{Class, Outcome};
use jitterscope_model::{Culprit, Subject};
use std::sync::Arc;

/// As elsewhere, but that a turn still under way at the end is the culprit's, and that the idle thread where
/// another one could run is the way out of idle: unless idle took over while the thread could run, or lasted
/// longer than that takes while a quota was counted.
pub(super) fn culprit(owner: u32, named: &Named<'_>) -> Arc<Culprit> {
    let frame = named.frame(owner);
    if frame.is_turn() && frame.tid == 0 && !named.is_withheld(owner) {
        let quota =
            culprits::quota_beside_idle(frame.gross(), named.window, &named.naming, named.rate);
        return Arc::new(
            quota.map_or_else(culprits::idle_exit, |quota| Subject::Quota(quota).into()),
        );
    }
    if frame.outcome == Outcome::Open && frame.class != Class::Turn {
        return Arc::new(named.culprit_while_open(owner));
    }
    named.culprit(owner)
}
