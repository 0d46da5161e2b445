//! Resolved settings of a recording without a probe.

use crate::settings::RunSettings;
use jitterscope_model::{EventGrain, NamedGroup, NamedOwner, Nanos};
use jitterscope_platform::CpuChoice;

/// The owners of the watched CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owners {
    /// On each CPU, the thread with the largest share in a look before the measurement.
    Largest,
    /// The threads of a process, including those that begin later.
    Process(i32),
    /// The threads of these control groups, including those that begin there or move there later.
    Group(NamedGroup),
    /// Every thread with this name, including those that begin later.
    Named(String),
}

impl Owners {
    /// As the user named them.
    pub(super) fn named(&self) -> Option<NamedOwner> {
        match self {
            Owners::Largest => None,
            Owners::Process(pid) => Some(NamedOwner::Process { pid: *pid }),
            Owners::Group(group) => Some(NamedOwner::Group {
                group: group.to_string(),
            }),
            Owners::Named(name) => Some(NamedOwner::Named { name: name.clone() }),
        }
    }
}

#[derive(Clone, Debug)]
pub struct PassiveRecordSettings {
    /// The settings of every kind of recording.
    pub run: RunSettings,
    pub cpus: CpuChoice,
    /// The owners of these CPUs.
    pub owners: Owners,
    /// Length of the measurement.
    pub duration: Nanos,
    /// Length of the look before the measurement.
    pub look: Nanos,
    /// Stolen stretches at or above this length are stalls.
    pub threshold: Nanos,
    /// Length of a reporting interval.
    pub interval: Nanos,
    /// Which kernel events are recorded.
    pub events: EventGrain,
}
