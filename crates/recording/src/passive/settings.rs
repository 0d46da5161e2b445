//! What is watched, resolved from what the user asked for.

use crate::settings::RunSettings;
use jitterscope_model::{EventGrain, Nanos};
use jitterscope_platform::CpuChoice;

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
    /// What every kind of recording is asked.
    pub run: RunSettings,
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
    /// Which kernel events are recorded.
    pub events: EventGrain,
}
