//! Why a recording failed as a whole. What fails in part is a warning of the run instead.

use crate::graph::GraphError;
use jitterscope_model::{CpuId, Nanos, SourceProblem, TscFlaw};
use jitterscope_platform::{ClockError, PinError};

impl RecordError {
    /// Whether what was asked for cannot be had here: a real-time priority that the kernel refuses this user, or a
    /// clock that cannot be trusted on this machine.
    #[must_use]
    pub fn is_unavailable_here(&self) -> bool {
        match self {
            RecordError::Probe { source, .. } => source.pin().is_some_and(is_refused_priority),
            RecordError::Clock(ClockError::TscUnusable(_)) | RecordError::Graph { .. } => true,
            _ => false,
        }
    }

    /// What there is against the TSC, where it was asked for and cannot be trusted. Its words are added where a person
    /// reads them.
    #[must_use]
    pub fn tsc_flaw(&self) -> Option<&TscFlaw> {
        match self {
            RecordError::Clock(ClockError::TscUnusable(flaw)) => Some(flaw),
            _ => None,
        }
    }

    /// What stood between us and the kernel's records, where that is the reason. The error says what failed for
    /// it; its words are added where a person reads them.
    #[must_use]
    pub fn problem(&self) -> Option<&SourceProblem> {
        match self {
            RecordError::Blind { problem }
            | RecordError::Graph { problem }
            | RecordError::NothingToWatch { problem } => Some(problem),
            _ => None,
        }
    }
}

impl From<GraphError> for RecordError {
    fn from(error: GraphError) -> RecordError {
        RecordError::Graph {
            problem: error.problem(),
        }
    }
}

/// Whether it is a real-time priority that this user may not have.
pub(crate) fn is_refused_priority(error: &PinError) -> bool {
    matches!(error, PinError::Priority { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied)
}

/// A recording that has no run to show.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// No clock as asked.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The run directory cannot be written.
    #[error(transparent)]
    Store(#[from] jitterscope_store::StoreError),
    /// Another recording measures a CPU.
    #[error(transparent)]
    Claimed(#[from] jitterscope_platform::CpuClaimed),
    /// A probe could not be set up.
    #[error("the probe for CPU {cpu} could not start: {source}")]
    Probe {
        /// The CPU.
        cpu: CpuId,
        /// Why.
        source: crate::probe_error::ProbeError,
    },
    /// A probe's thread could not be made.
    #[error("a thread for CPU {cpu} could not be started: {source}")]
    Thread {
        /// The CPU.
        cpu: CpuId,
        /// Why.
        source: std::io::Error,
    },
    /// A probe ended without a result.
    #[error("the probe of CPU {0} panicked; this is a bug")]
    ProbePanicked(CpuId),
    /// The measurement would take the whole machine.
    #[error(
        "SCHED_FIFO probes on every CPU would leave none to end them: leave a CPU out of --cpus, or leave out --priority"
    )]
    WouldHang,
    /// The threshold does not fit the counters.
    #[error("a threshold of {threshold} is {ticks} ticks of this clock; it can be at most {most}")]
    Threshold {
        /// As asked.
        threshold: Nanos,
        /// In ticks.
        ticks: u64,
        /// The most.
        most: Nanos,
    },
    /// An output cannot be opened, or refuses.
    #[error(transparent)]
    Output(#[from] jitterscope_model::SinkError),
    /// Nobody to follow.
    #[error(transparent)]
    Follow(#[from] crate::threads::FollowError),
    /// Threads cannot be followed without the kernel's events.
    #[error("threads cannot be followed without kernel events")]
    Blind {
        /// Why there are none.
        problem: SourceProblem,
    },
    /// Kernel functions were to be looked into, and cannot be.
    #[error("kernel functions cannot be looked into")]
    Graph {
        /// Why.
        problem: SourceProblem,
    },
    /// Nobody spins, so only the kernel's events tell.
    #[error("without a probe only kernel events tell what took a CPU, and there are none")]
    NothingToWatch {
        /// Why there are none.
        problem: SourceProblem,
    },
    /// Nothing was seen to belong anywhere.
    #[error(
        "no thread but the kernel's own had CPU {cpus} in the look of {look} before the measurement, so nothing \
         is known to belong there; name it with --for NAME or --for PID, or make the look longer with --warmup"
    )]
    NobodyBelongs {
        /// Where.
        cpus: jitterscope_model::CpuSet,
        /// For how long it was looked.
        look: Nanos,
    },
    /// A histogram cannot be made.
    #[error("a histogram cannot be made: {0}")]
    Histogram(#[from] hdrhistogram::CreationError),
    /// The user ended it before there was anything to keep.
    #[error("interrupted before the measurement began; nothing was recorded")]
    InterruptedEarly,
    /// The machine's own state could not be read.
    #[error("{what}: {source}")]
    Machine {
        /// What was asked.
        what: &'static str,
        /// Why not.
        source: std::io::Error,
    },
}
