//! Where our own threads keep while CPUs are measured.

use crate::error::RecordError;
use jitterscope_model::{CpuId, CpuSet, Nanos};
use jitterscope_platform::{confine_current_thread, current_affinity, thread_usage};

/// Confines the calling thread to CPUs that are not measured, and puts it back when dropped.
pub(crate) struct Home {
    before: CpuSet,
    /// Where it is confined to; empty when every allowed CPU is measured.
    pub(crate) helpers: CpuSet,
    cpu_time_before: Nanos,
}

impl Home {
    /// Leaves the `measured` CPUs. Where nothing else is allowed, `shared` is used all the same: better one
    /// measured CPU that is known to have our threads than all of them.
    pub(crate) fn leave(measured: &CpuSet, shared: Option<CpuId>) -> Result<Home, RecordError> {
        let before = current_affinity().map_err(|source| RecordError::Machine {
            what: "the affinity mask",
            source,
        })?;
        let mut helpers = before.difference(measured);
        if helpers.is_empty() {
            helpers = shared
                .into_iter()
                .filter(|cpu| before.contains(*cpu))
                .collect();
        }
        if !helpers.is_empty() && confine_current_thread(&helpers).is_err() {
            // All of them are offline or outside the cpuset: nothing is free after all.
            helpers = CpuSet::new();
        }
        Ok(Home {
            before,
            helpers,
            cpu_time_before: thread_usage().cpu_time,
        })
    }

    /// CPU time that the calling thread used since.
    pub(crate) fn cpu_time(&self) -> Nanos {
        thread_usage().cpu_time.saturating_sub(self.cpu_time_before)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // It was allowed there before; should that have changed, there is nowhere to put it back to.
        let _ = confine_current_thread(&self.before);
    }
}
