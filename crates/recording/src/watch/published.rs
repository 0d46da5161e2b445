//! What a watch shows of itself to other threads: its metrics.

use super::hours::HourCounts;
use super::status::WatchStatus;
use super::totals::{SharedTotals, Totals};
use jitterscope_model::UploadStatus;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// What is known of a running watch.
#[derive(Clone, Debug, Default)]
pub struct Published {
    pub(super) totals: SharedTotals,
    pub(super) hours: HourCounts,
    status: Arc<Mutex<Option<WatchStatus>>>,
    upload: Arc<Mutex<Option<UploadStatus>>>,
}

impl Published {
    pub(super) fn tell(&self, status: WatchStatus) {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
    }

    /// Takes what became of uploads.
    pub fn uploads(&self, status: UploadStatus) {
        *self.upload.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
    }

    /// What became of uploads; `None` if the watch has none.
    pub(super) fn upload(&self) -> Option<UploadStatus> {
        let held = self.upload.lock().unwrap_or_else(PoisonError::into_inner);
        held.clone().map(|status| UploadStatus {
            dropped_hours: self.hours.dropped.load(Ordering::Relaxed),
            ..status
        })
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
