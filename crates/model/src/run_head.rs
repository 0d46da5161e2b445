//! The head of a run: the facts for a list of runs, in a file that can be read in microseconds.

use crate::{CpuSet, Nanos, ProbeKind, ProbeResult, ProbeSettings, RunManifest, Ticks};
use serde::{Deserialize, Serialize};

/// The version of the run directory. Readers accept only this one.
pub const RUN_SCHEMA_VERSION: u32 = 3;

/// A run's identity and main figures: `manifest.json`. Its other facts are in `details.json` ([`RunManifest`]) and
/// `machine.json` ([`crate::MachineState`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunHead {
    /// [`RUN_SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    pub tool_version: String,
    /// Unique short id.
    pub id: String,
    /// The user's name for the configuration.
    pub label: String,
    pub hostname: String,
    /// Start of the measurement, nanoseconds since the epoch.
    pub started_realtime_ns: u64,
    pub probe: ProbeSettings,
    /// Whether stalls were attributed from kernel events (else only counted).
    pub attributed: bool,
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// Whether the recorder was killed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub killed: bool,
    pub figures: RunFigures,
}

/// The main figures of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunFigures {
    /// CPUs that were measured, that the pipeline could run on, or that followed threads ran on; without the idle
    /// control.
    pub cpus: CpuSet,
    /// From the first clock read to the last.
    pub duration_ns: Nanos,
    /// Stalls of all CPUs, or slow messages of all consumers; none for followed threads, because the manifest has no
    /// such number.
    pub stalls: Option<u64>,
    /// Stolen time as a share of the measured time of all CPUs. None if no probe spun and no CPU was watched: lateness,
    /// and the waits of concurrent messages, are not stolen time.
    pub stolen_fraction: Option<f64>,
    /// The maximum: the longest delta, the longest time of a message from its intended time, the longest wait of a
    /// followed thread for a CPU, or the longest stretch of stolen time on a watched CPU. None if nothing was measured.
    pub max_ns: Option<Nanos>,
}

impl RunHead {
    /// The head of a complete manifest.
    #[must_use]
    pub fn of(manifest: &RunManifest) -> RunHead {
        RunHead {
            schema_version: manifest.schema_version,
            tool_version: manifest.tool_version.clone(),
            id: manifest.id.clone(),
            label: manifest.label.clone(),
            hostname: manifest.host.hostname.clone(),
            started_realtime_ns: manifest.started_realtime_ns(),
            probe: manifest.probe.clone(),
            attributed: manifest.attributed,
            interrupted: manifest.interrupted,
            killed: manifest.killed,
            figures: RunFigures::of(manifest),
        }
    }
}

impl RunFigures {
    fn of(manifest: &RunManifest) -> RunFigures {
        // The idle control is only a baseline, and part of no sum.
        let control = manifest.idle_control();
        let results = || {
            manifest
                .results
                .iter()
                .filter(|result| Some(result.cpu) != control)
        };
        let sum = |of: fn(&ProbeResult) -> u64| results().map(of).fold(0, u64::saturating_add);
        let longest = results()
            .filter(|r| r.has_longest())
            .map(|r| r.max_ticks)
            .max();
        let consumers = || {
            manifest
                .pipeline
                .iter()
                .flat_map(|pipeline| &pipeline.consumers)
        };
        let slowest = consumers()
            .filter(|c| c.received > 0)
            .map(|c| c.from_intended.max)
            .max();
        let waited = manifest
            .threads
            .iter()
            .map(|thread| thread.longest_wait_ns)
            .max();
        let kind = manifest.probe.kind();
        let waited = waited.filter(|_| kind == Some(ProbeKind::Attach));
        let passive = || manifest.passive.iter();
        let taken = passive().map(|cpu| cpu.longest_ns).max();
        RunFigures {
            cpus: match &manifest.pipeline {
                Some(_) => manifest.probe.cpus.clone(),
                None => {
                    let followed = manifest.threads.iter().flat_map(|thread| &thread.cpus);
                    let watched = passive().map(|cpu| cpu.cpu);
                    results()
                        .map(|r| r.cpu)
                        .chain(followed.map(|share| share.cpu))
                        .chain(watched)
                        .collect()
                }
            },
            duration_ns: manifest.duration(),
            stalls: (kind != Some(ProbeKind::Attach)).then(|| {
                let slow = consumers()
                    .map(|c| c.slow)
                    .chain(passive().map(|cpu| cpu.stalls));
                slow.fold(sum(|r| r.stalls), u64::saturating_add)
            }),
            stolen_fraction: match kind {
                Some(ProbeKind::Spin) => Some(share(
                    sum(|r| r.stalled_ticks),
                    sum(|r| r.end.since(r.start).0),
                )),
                Some(ProbeKind::Passive) => {
                    let stolen: Nanos = passive().map(crate::PassiveCpu::stolen_ns).sum();
                    Some(share(stolen.0, manifest.measured_time().0))
                }
                _ => None,
            },
            max_ns: longest
                .map(|ticks| manifest.rate.nanos(Ticks(ticks)))
                .or(slowest)
                .or(waited)
                .or(taken),
        }
    }
}

/// A ratio; zero if the whole is zero.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}
