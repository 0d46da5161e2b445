//! Why a condition is undecided, and notes on kept ones, as data.

use crate::compare::ConditionDifference;
use jitterscope_model::{Doubt, SourceProblem};

/// Why a condition is undecided.
#[derive(Clone, Debug, PartialEq)]
pub enum GateReason {
    /// The condition is about changes, and there is one run.
    OnlyDiffCompares,
    /// The run's evidence fails its own proof.
    Unproven(Vec<Doubt>),
    /// Kernel events were lost.
    EventsLost(u64),
    /// The recorder was killed, and took the answer with it.
    RecorderKilled,
    /// Stalls without a record.
    StallsUnrecorded(u64),
    /// Stalls with lost records inside.
    LostWithinStalls,
    /// A needed source was incomplete.
    Source {
        source: GateSource,
        why: SourceDoubt,
    },
    /// No kernel events were recorded.
    NobodyNamed,
    NoProbeSpun(InsteadOfSpinning),
    /// No probe slept and woke.
    NoProbeSlept,
    /// The run passed no messages.
    NoMessages,
    /// No consumer received a message.
    NoMessagesReceived,
    NothingMeasured,
    /// No followed thread had work.
    NoWork,
    /// No threads were followed.
    NobodyFollowed,
    /// This share of the followed time was slept for an unknown reason.
    ReasonUnknown(f64),
    /// Too few values lie above the percentile.
    FewAbove(Counted),
    /// The percentile rests on too few values.
    RestsOnFew {
        of: Counted,
        /// The number above it.
        above: f64,
        needed: u128,
    },
    /// Only threads that are reported with their process have this name.
    GoesByProcess {
        thread: String,
        /// The name of the process in reports.
        program: String,
    },
    /// Only probes see the time that a hypervisor takes from a running thread.
    HostNotRecorded,
    /// This share of the time is unexplained, and may have been the hypervisor's.
    HostMayHaveTaken(f64),
    /// The owner of threads that took this share is unknown.
    OwnerUnknown(f64),
    /// Some runs of a comparison name no culprits.
    NotAllNamed,
    /// Both sides of a comparison have no figure in common.
    NoFigureCompared,
    /// Nothing could be compared.
    NothingCompared,
    /// The conditions of the two sides make them incomparable.
    NotComparable(ConditionDifference),
    /// Figures may be worse; the value is the change of the one that takes most to decide.
    MayBeWorse {
        open: usize,
        all: usize,
        /// What would decide it.
        help: MoreRuns,
    },
}

/// A source without which some quantities read too low.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateSource {
    /// Kernel events: the source for culprits, threads and watched CPUs.
    Events,
    Symbols,
    /// SMI counts, which separate firmware from other causes below the kernel.
    Smi,
}

impl GateSource {
    /// Its name among a run's sources.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            GateSource::Events => "tracefs",
            GateSource::Symbols => "symbols",
            GateSource::Smi => "smi",
        }
    }
}

/// Why a source is not usable.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceDoubt {
    /// The source was incomplete.
    Limited(Vec<SourceProblem>),
    /// The run did not use the source.
    NotCounted,
    /// On a virtual machine, the count does not include the host's firmware.
    VirtualMachine,
}

/// What a run measured instead of spinning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsteadOfSpinning {
    Nothing,
    /// The lateness of wake-ups.
    Lateness,
    /// The work of followed threads or watched CPUs.
    Work,
}

/// The values behind a percentile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Waits,
    Stalls,
    WakeUps,
    Messages,
}

/// How many runs would decide whether a figure is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoreRuns {
    /// None: not every run has the figure.
    NotMeasured,
    /// Perhaps this many more runs of each side.
    Some(usize),
    /// None: the runs of one side precede those of the other.
    OneAfterTheOther,
    Unknown,
}

/// A note on a kept condition: no culprit matches its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateNote {
    /// No culprit of this kind was seen.
    NoneSeen,
    /// No culprit has the name; these have similar names.
    Alike(Vec<String>),
    /// No culprit has the name; these took the most time.
    Others(Vec<String>),
    Nobody,
}
