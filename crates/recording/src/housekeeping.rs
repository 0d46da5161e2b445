//! Where our own threads run while CPUs are measured.

use crate::error::RecordError;
use jitterscope_model::{CpuId, CpuSet, Nanos};
use jitterscope_platform::{confine_current_thread, current_affinity, thread_usage};

/// Confines the calling thread to unmeasured CPUs. Dropping it restores the affinity.
pub(crate) struct HousekeepingAffinity {
    before: CpuSet,
    /// The CPUs that it is confined to; empty if every allowed CPU is measured.
    pub(crate) helpers: CpuSet,
    cpu_time_before: Nanos,
}

impl HousekeepingAffinity {
    /// Leaves the `measured` CPUs. If no other CPU is allowed, uses `shared`: better one measured CPU that is known to
    /// run our threads than all of them.
    pub(crate) fn leave(
        measured: &CpuSet,
        shared: Option<CpuId>,
    ) -> Result<HousekeepingAffinity, RecordError> {
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
            // All other CPUs are offline or outside the cpuset, so none is free.
            helpers = CpuSet::new();
        }
        Ok(HousekeepingAffinity {
            before,
            helpers,
            cpu_time_before: thread_usage().cpu_time,
        })
    }

    /// CPU time of the calling thread since then.
    pub(crate) fn cpu_time(&self) -> Nanos {
        thread_usage().cpu_time.saturating_sub(self.cpu_time_before)
    }
}

impl Drop for HousekeepingAffinity {
    fn drop(&mut self) {
        // The old affinity was valid before; if it no longer is, there is nothing to restore.
        let _ = confine_current_thread(&self.before);
    }
}
