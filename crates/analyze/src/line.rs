//! The summary of a run in one line, from its head alone.

use jitterscope_model::{CpuSet, Nanos, RunHead};
use schemars::JsonSchema;
use serde::Serialize;

/// The fields of a run in a list of runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunLine {
    pub id: String,
    /// Start of the measurement, nanoseconds since the epoch.
    pub started_realtime_ns: u64,
    /// The user's name for the configuration.
    pub label: String,
    /// `spin`, `wakeup`, `pipeline`, `attach` or `passive`.
    pub probe: String,
    /// The CPUs that were measured, available to the pipeline, or used by followed threads.
    pub cpus: CpuSet,
    /// From the first clock read to the last.
    pub duration_ns: Nanos,
    /// Stalls of all CPUs, or slow messages of all consumers; null for followed threads, whose number is not in the
    /// manifest.
    pub stalls: Option<u64>,
    /// The stolen share of the measured time of all CPUs; null without a spinning probe: lateness, and messages that
    /// wait in parallel, are not stolen time.
    pub stolen_fraction: Option<f64>,
    /// The longest delta, the longest time of a message from its intended publication, or the longest wait of a
    /// followed thread for a CPU; null if nothing was measured.
    pub max_ns: Option<Nanos>,
    /// Whether its stalls have culprits.
    pub attributed: bool,
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// Whether its recorder was killed.
    pub killed: bool,
}

impl RunLine {
    /// The line of a run.
    #[must_use]
    pub fn new(head: &RunHead) -> RunLine {
        let figures = &head.figures;
        RunLine {
            id: head.id.clone(),
            started_realtime_ns: head.started_realtime_ns,
            label: head.label.clone(),
            probe: head.probe.kind.clone(),
            cpus: figures.cpus.clone(),
            duration_ns: figures.duration_ns,
            stalls: figures.stalls,
            stolen_fraction: figures.stolen_fraction,
            max_ns: figures.max_ns,
            attributed: head.attributed,
            interrupted: head.interrupted,
            killed: head.killed,
        }
    }
}
