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
    /// `spin`, `wakeup`, `pipeline` or `attach`.
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
    pub fn new(manifest: &RunManifest) -> RunLine {
        // The idle control is measured only to compare with, and in no sum.
        let control = manifest.probe.wakeup.as_ref().and_then(|wakeup| wakeup.idle_control);
        let results = || manifest.results.iter().filter(|result| Some(result.cpu) != control);
        let sum =
            |of: fn(&jitterscope_model::ProbeResult) -> u64| results().map(of).fold(0, u64::saturating_add);
        let longest = results().filter(|r| r.samples > 0).map(|r| r.max_ticks).max();
        let consumers = || manifest.pipeline.iter().flat_map(|pipeline| &pipeline.consumers);
        let slowest = consumers().filter(|c| c.received > 0).map(|c| c.from_intended.max).max();
        let waited = manifest.threads.iter().map(|thread| thread.longest_wait_ns).max();
        let waited = waited.filter(|_| manifest.probe.kind == "attach");
        RunLine {
            id: manifest.id.clone(),
            started_realtime_ns: started(manifest),
            label: manifest.label.clone(),
            probe: manifest.probe.kind.clone(),
            cpus: match &manifest.pipeline {
                Some(_) => manifest.probe.cpus.clone(),
                None => {
                    let followed = manifest.threads.iter().flat_map(|thread| &thread.cpus);
                    results().map(|r| r.cpu).chain(followed.map(|share| share.cpu)).collect()
                }
            },
            duration_ns: duration(manifest),
            stalls: (manifest.probe.kind != "attach")
                .then(|| sum(|r| r.stalls) + consumers().map(|c| c.slow).sum::<u64>()),
            stolen_fraction: (manifest.probe.kind == "spin")
                .then(|| share(sum(|r| r.stalled_ticks), sum(|r| r.end.since(r.start).0))),
            max_ns: longest.map(|ticks| manifest.rate.nanos(Ticks(ticks))).or(slowest).or(waited),
            attributed: manifest.attributed,
            interrupted: manifest.interrupted,
        }
    }
}
