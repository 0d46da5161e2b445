//! Errors that end a recording. A partial failure is a warning in the run instead.

use crate::graph::GraphError;
use jitterscope_model::{CpuId, Nanos, SourceProblem, TscFlaw};
use jitterscope_platform::{ClockError, PinError};

impl RecordError {
    /// Whether the request is impossible here: the kernel refuses this user a real-time priority, or the requested
    /// clock cannot be trusted on this machine.
    #[must_use]
    pub fn is_unavailable_here(&self) -> bool {
        match self {
            RecordError::Probe { source, .. } => source.pin().is_some_and(is_refused_priority),
            RecordError::Clock(ClockError::TscUnusable(_)) | RecordError::Graph { .. } => true,
            _ => false,
        }
    }

    /// The flaw of the TSC, if it was requested and cannot be trusted. The presentation layer adds the words.
    #[must_use]
    pub fn tsc_flaw(&self) -> Option<&TscFlaw> {
        match self {
            RecordError::Clock(ClockError::TscUnusable(flaw)) => Some(flaw),
            _ => None,
        }
    }

    /// The source problem, if that is the reason. The error says which request failed because of it; the presentation
    /// layer adds the words.
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

/// Whether this user may not have the requested real-time priority.
pub(crate) fn is_refused_priority(error: &PinError) -> bool {
    matches!(error, PinError::Priority { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied)
}

/// A recording that produced no run.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The requested clock is unavailable.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The run directory cannot be written.
    #[error(transparent)]
    Store(#[from] jitterscope_store::StoreError),
    /// Another recording measures one of the CPUs.
    #[error(transparent)]
    Claimed(#[from] jitterscope_platform::CpuClaimed),
    /// A probe could not be set up.
    #[error("the probe for CPU {cpu} could not start: {source}")]
    Probe {
        cpu: CpuId,
        source: crate::probe_error::ProbeError,
    },
    /// A probe's thread could not be made.
    #[error("a thread for CPU {cpu} could not be started: {source}")]
    Thread { cpu: CpuId, source: std::io::Error },
    /// A probe ended without a result.
    #[error("the probe of CPU {0} panicked; this is a bug")]
    ProbePanicked(CpuId),
    /// The measurement would occupy the whole machine.
    #[error(
        "SCHED_FIFO probes on every CPU would leave none to end them: leave a CPU out of --cpus, or leave out --priority"
    )]
    WouldHang,
    /// The threshold exceeds the counters' range.
    #[error("a threshold of {threshold} is {ticks} ticks of this clock; it can be at most {most}")]
    Threshold {
        threshold: Nanos,
        /// The same in ticks.
        ticks: u64,
        most: Nanos,
    },
    /// An output cannot be opened, or refuses.
    #[error(transparent)]
    Output(#[from] jitterscope_model::SinkError),
    /// There is no thread to follow.
    #[error(transparent)]
    Follow(#[from] crate::threads::FollowError),
    /// Following threads needs kernel events.
    #[error("threads cannot be followed without kernel events")]
    Blind {
        /// Why there are none.
        problem: SourceProblem,
    },
    /// The requested kernel functions cannot be traced.
    #[error("kernel functions cannot be looked into")]
    Graph { problem: SourceProblem },
    /// No probe spins, so kernel events are the only source.
    #[error("without a probe only kernel events tell what took a CPU, and there are none")]
    NothingToWatch {
        /// Why there are none.
        problem: SourceProblem,
    },
    /// The look found no thread to treat as the CPU's owner.
    #[error(
        "no thread but the kernel's own had CPU {cpus} in the look of {look} before the measurement, so nothing \
         is known to belong there; name it with --for NAME or --for PID, or make the look longer with --warmup"
    )]
    NoOwner {
        cpus: jitterscope_model::CpuSet,
        /// The length of the look.
        look: Nanos,
    },
    /// A histogram cannot be made.
    #[error("a histogram cannot be made: {0}")]
    Histogram(#[from] hdrhistogram::CreationError),
    /// The user ended it before anything was measured.
    #[error("interrupted before the measurement began; nothing was recorded")]
    InterruptedEarly,
    /// The machine's own state could not be read.
    #[error("{what}: {source}")]
    Machine {
        what: &'static str,
        source: std::io::Error,
    },
}
