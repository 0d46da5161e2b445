//! What must be known of a run before its rows can be summed.

use jitterscope_model::{CpuId, RunManifest, TickRate};

/// What must be known of a run before its first row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsOf {
    /// Ticks to nanoseconds.
    pub rate: TickRate,
    /// Whether stalls are attributed.
    pub attributed: bool,
    /// CPUs with a probe, an idle control among them.
    pub probed: usize,
    /// The CPU that is only measured to compare the others with.
    pub control: Option<CpuId>,
    /// Whether the probes sleep.
    pub sleeps: bool,
    /// Whether the stalls are slow messages of a pipeline.
    pub messages: bool,
}

impl RowsOf {
    /// Those of a run that is over.
    #[must_use]
    pub fn run(manifest: &RunManifest) -> RowsOf {
        RowsOf {
            rate: manifest.rate,
            attributed: manifest.attributed,
            probed: manifest.results.len(),
            control: manifest.idle_control(),
            sleeps: !manifest.wakeups.is_empty(),
            messages: manifest.pipeline.is_some(),
        }
    }

    /// Those of threads that are followed and of CPUs that are watched.
    #[must_use]
    pub fn without_probes(rate: TickRate) -> RowsOf {
        RowsOf {
            rate,
            attributed: true,
            probed: 0,
            control: None,
            sleeps: false,
            messages: false,
        }
    }

    /// CPUs with a probe but for an idle control.
    pub(crate) fn measured(&self) -> usize {
        self.probed - usize::from(self.control.is_some() && self.probed > 0)
    }
}
