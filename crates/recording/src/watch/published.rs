//! What a watch shows of itself to other threads: its metrics.

use super::status::WatchStatus;
use super::totals::{SharedTotals, Totals};
use std::sync::{Arc, Mutex, PoisonError};

/// What is known of a running watch.
#[derive(Clone, Debug, Default)]
pub struct Published {
    pub(super) totals: SharedTotals,
    status: Arc<Mutex<Option<WatchStatus>>>,
}

impl Published {
    pub(super) fn tell(&self, status: WatchStatus) {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
    }

    /// The state, at most two seconds old and without its hours, and the sums; `None` before the measurement begins.
    #[must_use]
    pub fn look(&self) -> Option<(WatchStatus, Totals)> {
        let held = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        let status = held.clone()?;
        drop(held);
        Some((status, self.totals.lock().clone()))
    }
}
