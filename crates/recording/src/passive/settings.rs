//! What is watched, resolved from what the user asked for.

use jitterscope_model::{ClockKind, Nanos, TuningState};
use jitterscope_platform::CpuChoice;
use std::path::PathBuf;

/// What belongs on the watched CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owners {
    /// On each CPU the thread that has most of it in a look before the measurement.
    Largest,
    /// The threads of a process, those that begin later included.
    Process(i32),
    /// Every thread of this name, also those that begin later.
    Named(String),
}

/// Settings of one recording without a probe.
#[derive(Clone, Debug)]
pub struct PassiveRecordSettings {
    /// CPUs to watch.
    pub cpus: CpuChoice,
    /// What belongs there.
    pub owners: Owners,
    /// Length of the measurement.
    pub duration: Nanos,
    /// Length of the look before it.
    pub look: Nanos,
    /// Stretches of stolen time at or above this are stalls.
    pub threshold: Nanos,
    /// Length of a reporting interval.
    pub interval: Nanos,
    /// The clock, when the user insists on one.
    pub clock: Option<ClockKind>,
    /// Size of each watched CPU's trace buffer, KiB.
    pub trace_buffer_kib: u32,
    /// Raw trace kept with the run at most, bytes.
    pub trace_limit_bytes: u64,
    /// The knobs of the machine as the audit found them, and what was applied; `None` when nobody looked.
    pub tuning: Option<TuningState>,
    /// The user's name for the configuration.
    pub label: String,
    /// Where runs are kept.
    pub runs_dir: PathBuf,
    /// The command line, for the manifest.
    pub command_line: Vec<String>,
}
