//! Resolved settings of a recording of the pipeline.

use crate::settings::RunSettings;
use jitterscope_model::{CpuSet, JournalWriting, Nanos, PipelinePacing, PipelineRole, PipelineVia};
use jitterscope_probe::pipeline::Place;
use std::path::PathBuf;

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PipelineLength {
    Messages(u64),
    /// As many messages as the schedule has in this time.
    Time(Nanos),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputChoice {
    /// The user's file, whose complete records are sent repeatedly.
    Own(PathBuf),
    /// A file of pseudo-random bytes in this folder, created on first use.
    Made {
        /// The folder, also created.
        folder: PathBuf,
        /// How many records it holds.
        records: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineRecordSettings {
    /// The settings of every kind of recording.
    pub run: RunSettings,
    /// Bytes of a record.
    pub record_length: usize,
    /// Where the records come from.
    pub input: InputChoice,
    /// Slots of the ring, a power of two; through the kernel, the most messages on their way.
    pub ring: usize,
    /// Time between publications; zero sends as fast as the ring allows.
    pub interval: Nanos,
    /// How the interval is kept.
    pub pacing: PipelinePacing,
    /// How much is measured.
    pub length: PipelineLength,
    pub warm_up_messages: u64,
    /// Pause between warm-up and measurement.
    pub pause: Nanos,
    /// Whether there is a journaller.
    pub journaller: bool,
    /// Its file; `None` keeps the journal in the run's folder.
    pub journal: Option<PathBuf>,
    /// How it is written.
    pub writing: JournalWriting,
    /// How messages travel.
    pub via: PipelineVia,
    /// Where each thread runs: producer, accumulator, journaller.
    pub places: Places,
    /// Messages later than this after their intended time are slow; `None` learns the limit from the warm-up.
    pub slow_above: Option<Nanos>,
    /// Length of a reporting interval.
    pub reporting: Nanos,
    /// Whether kernel events are recorded.
    pub trace: bool,
    /// Whether to continue if the placement would be refused.
    pub force: bool,
}

/// Where each thread runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    pub producer: Place,
    pub accumulator: Place,
    /// Receives, accounts and writes the journal.
    pub journaller: Place,
}

impl Places {
    /// Where one of them runs.
    #[must_use]
    pub fn of(&self, role: PipelineRole) -> Place {
        match role {
            PipelineRole::Producer => self.producer,
            PipelineRole::Accumulator => self.accumulator,
            PipelineRole::Journaller => self.journaller,
        }
    }
}

impl PipelineRecordSettings {
    /// CPUs that threads are pinned to.
    #[must_use]
    pub fn pinned(&self) -> CpuSet {
        self.roles()
            .iter()
            .filter_map(|role| self.places.of(*role).cpu)
            .collect()
    }

    /// The threads that will be busy.
    #[must_use]
    pub fn roles(&self) -> Vec<PipelineRole> {
        let mut roles = vec![PipelineRole::Producer, PipelineRole::Accumulator];
        if self.journaller {
            roles.push(PipelineRole::Journaller);
        }
        roles
    }
}
