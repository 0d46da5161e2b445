//! A run in a line, from its manifest alone.

use crate::builder::{duration, started};
use crate::cpu::share;
use jitterscope_model::{CpuSet, Nanos, RunManifest, Ticks};
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
    /// CPUs measured.
    pub cpus: CpuSet,
    /// From the first clock read to the last.
    pub duration_ns: Nanos,
    /// Stalls, of all CPUs.
    pub stalls: u64,
    /// Stolen time, of the measured time of all CPUs.
    pub stolen_fraction: f64,
    /// The longest delta; null when nothing was measured.
    pub max_ns: Option<Nanos>,
    /// Whether its stalls have culprits.
    pub attributed: bool,
    /// Whether the user ended it early.
    pub interrupted: bool,
}

impl RunLine {
    /// The line of a run.
    #[must_use]
    pub fn new(manifest: &RunManifest) -> RunLine {
        let results = &manifest.results;
        let sum = |of: fn(&jitterscope_model::ProbeResult) -> u64| {
            results.iter().map(of).fold(0, u64::saturating_add)
        };
        let longest = results.iter().filter(|r| r.samples > 0).map(|r| r.max_ticks).max();
        RunLine {
            id: manifest.id.clone(),
            started_realtime_ns: started(manifest),
            label: manifest.label.clone(),
            cpus: results.iter().map(|r| r.cpu).collect(),
            duration_ns: duration(manifest),
            stalls: sum(|r| r.stalls),
            stolen_fraction: share(sum(|r| r.stalled_ticks), sum(|r| r.end.since(r.start).0)),
            max_ns: longest.map(|ticks| manifest.rate.nanos(Ticks(ticks))),
            attributed: manifest.attributed,
            interrupted: manifest.interrupted,
        }
    }
}
