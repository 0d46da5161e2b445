//! The properties of a run that are needed to sum its rows.

use jitterscope_model::{CpuId, RunManifest, TickRate};

/// The properties of a run that are known before its first row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsOf {
    /// Ticks to nanoseconds.
    pub rate: TickRate,
    /// Whether stalls are attributed.
    pub attributed: bool,
    /// The number of CPUs with a probe, including an idle control.
    pub probed: usize,
    /// The CPU measured only for comparison.
    pub control: Option<CpuId>,
    /// Whether the probes sleep.
    pub sleeps: bool,
    /// Whether the stalls are slow messages of a pipeline.
    pub messages: bool,
}

impl RowsOf {
    /// The properties of a finished run.
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

    /// The properties for followed threads and watched CPUs.
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

    /// The number of CPUs with a probe, without an idle control.
    pub(crate) fn measured(&self) -> usize {
        self.probed - usize::from(self.control.is_some() && self.probed > 0)
    }
}
