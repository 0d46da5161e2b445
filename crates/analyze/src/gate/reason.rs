//! Why a condition cannot be decided, and what goes with one that is kept, as data.

use crate::compare::ConditionDifference;
use jitterscope_model::{Doubt, SourceProblem};

/// Why a condition cannot be decided.
#[derive(Clone, Debug, PartialEq)]
pub enum GateReason {
    /// It is about changes, and there is one run.
    OnlyDiffCompares,
    /// The run's evidence fails its own proof.
    Unproven(Vec<Doubt>),
    /// Kernel events were lost.
    EventsLost(u64),
    /// Stalls have no record.
    StallsUnrecorded(u64),
    /// Stalls have losses of records within them.
    LostWithinStalls,
    /// A source that it takes was not all there.
    Source {
        /// Which.
        source: GateSource,
        /// Why.
        why: SourceDoubt,
    },
    /// No kernel events were recorded.
    NobodyNamed,
    /// No probe spun.
    NoProbeSpun(InsteadOfSpinning),
    /// No probe slept and woke.
    NoProbeSlept,
    /// No messages were passed.
    NoMessages,
    /// They were, and none was received.
    NoMessagesReceived,
    /// Nothing was measured.
    NothingMeasured,
    /// No thread was followed that had work.
    NoWork,
    /// Too few lie above a percentile for it to be known.
    FewAbove(Counted),
    /// A percentile rests on too few.
    RestsOnFew {
        /// What.
        of: Counted,
        /// So many lie above it.
        above: f64,
        /// So many it takes.
        needed: u128,
    },
    /// A name that only threads bear which are reported together with their process.
    GoesByProcess {
        /// The thread's name.
        thread: String,
        /// The name that it is reported by.
        program: String,
    },
    /// What a hypervisor takes from a thread that runs is seen by probes alone.
    HostNotRecorded,
    /// A share of the time has no explanation, and may have been the hypervisor's.
    HostMayHaveTaken(f64),
    /// Some runs of a comparison name no culprits.
    NotAllNamed,
    /// None of a comparison's figures was measured on both sides.
    NoFigureCompared,
    /// Nothing could be compared.
    NothingCompared,
    /// The sides of a comparison were measured under conditions that make them say nothing of one another.
    NotComparable(ConditionDifference),
    /// Figures may be worse.
    MayBeWorse {
        /// So many.
        open: usize,
        /// Of these.
        all: usize,
        /// What would decide it.
        help: MoreRuns,
    },
}

/// A source without which some quantities read lower than they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateSource {
    /// Kernel events: all that is known of culprits, threads and watched CPUs.
    Events,
    /// Names of functions.
    Symbols,
    /// What tells firmware from whatever else is below the kernel.
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

/// Why a source does not serve.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceDoubt {
    /// It was not all there.
    Limited(Vec<SourceProblem>),
    /// The run did not look for it.
    NotCounted,
    /// A virtual machine's count does not see what the host's firmware does.
    VirtualMachine,
}

/// What was measured where no probe spun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsteadOfSpinning {
    /// Nothing that would stand for it.
    Nothing,
    /// How late wake-ups were.
    Lateness,
    /// What had work on followed threads or watched CPUs.
    Work,
}

/// What percentiles are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Waits.
    Waits,
    /// Stalls.
    Stalls,
    /// Wake-ups.
    WakeUps,
    /// Messages.
    Messages,
}

/// What would decide whether a figure is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoreRuns {
    /// Nothing: not every run has it.
    NotMeasured,
    /// So many runs more of each side, perhaps.
    Some(usize),
    /// No number of runs that anybody makes.
    Unknown,
}

/// What goes with a condition that is kept: nobody was seen who has its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateNote {
    /// None of this kind was seen.
    NoneSeen,
    /// Nobody of the name, but these, whose names are alike.
    Alike(Vec<String>),
    /// Nobody of the name; these took most.
    Others(Vec<String>),
    /// Nobody at all.
    Nobody,
}
