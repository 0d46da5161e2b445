//! What is known of a run before its first row.

use jitterscope_model::{ClockReading, CpuSet, Nanos, RunManifest, TickRate, Ticks};

/// The run that rows belong to, and the clock to date them with.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFacts {
    /// The run's id; empty for a live one.
    pub id: String,
    /// The user's name for the configuration.
    pub label: String,
    /// The machine.
    pub hostname: String,
    /// The probe.
    pub probe: String,
    /// CPUs measured.
    pub cpus: CpuSet,
    /// Shortest stall.
    pub threshold: Nanos,
    /// Length of an interval.
    pub interval: Nanos,
    /// Rate of the measuring clock.
    pub rate: TickRate,
    /// Clocks at the start: rows are dated from here on the measuring clock, so that a step of the wall
    /// clock bends nothing.
    pub clock: ClockReading,
}

impl RunFacts {
    /// Those of a stored run.
    #[must_use]
    pub fn of(manifest: &RunManifest) -> RunFacts {
        RunFacts {
            id: manifest.id.clone(),
            label: manifest.label.clone(),
            hostname: manifest.host.hostname.clone(),
            probe: manifest.probe.kind.clone(),
            cpus: manifest.probe.cpus.clone(),
            threshold: manifest.probe.threshold_ns,
            interval: manifest.probe.interval_ns,
            rate: manifest.rate,
            clock: manifest.clock_start,
        }
    }

    /// An instant in nanoseconds since the epoch.
    #[must_use]
    pub fn epoch_ns(&self, at: Ticks) -> u64 {
        self.clock.realtime_of(at, self.rate)
    }
}
