//! A run in a line, from its head alone.

use jitterscope_model::{CpuSet, Nanos, RunHead};
use serde::Serialize;

/// What a list of runs shows of each.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunLine {
    /// Its short id.
    pub id: String,
    /// Start of the measurement, nanoseconds since the epoch.
    pub started_realtime_ns: u64,
    /// The user's name for the configuration.
    pub label: String,
    /// `spin`, `wakeup`, `pipeline`, `attach` or `passive`.
    pub probe: String,
    /// CPUs measured, that the pipeline could run on, or that followed threads ran on.
    pub cpus: CpuSet,
    /// From the first clock read to the last.
    pub duration_ns: Nanos,
    /// Stalls of all CPUs, or slow messages of all consumers; null for followed threads, of which the
    /// manifest has no number.
    pub stalls: Option<u64>,
    /// Stolen time, of the measured time of all CPUs; null where no probe spun: lateness, and messages that
    /// wait side by side, are not time that was stolen.
    pub stolen_fraction: Option<f64>,
    /// The longest delta, the longest that a message took from its intended time, or the longest that a
    /// followed thread waited for a CPU; null when nothing was measured.
    pub max_ns: Option<Nanos>,
    /// Whether its stalls have culprits.
    pub attributed: bool,
    /// Whether the user ended it early.
    pub interrupted: bool,
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
        }
    }
}
