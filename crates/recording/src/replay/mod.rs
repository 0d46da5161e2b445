//! A stored run again, from the raw trace that it kept.

mod breaks;
mod old;
mod passive;
mod probes;
mod steps;
mod summary;
mod threads;
mod timeline;

pub use summary::reattributed;
pub use timeline::{stall_timeline, stall_timelines};

use jitterscope_model::{
    Attribution, EventsInGaps, IntervalRow, PassiveCpu, ProbeKind, SinkError, Stall, ThreadAccount,
};
use jitterscope_source::{ContextError, TraceContext};
use jitterscope_store::{RunReader, StoreError};

/// Why a stored run, or a stall of it, cannot be looked at again.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The run cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The run's description of its pages cannot be used.
    #[error("the run's trace cannot be decoded: {0}")]
    Context(#[from] ContextError),
    /// The run was recorded without kernel events.
    #[error(
        "this run has no kernel events: it was recorded with --no-trace, or where tracefs could not be used"
    )]
    NoTrace,
    /// Whoever takes the stalls takes no more.
    #[error(transparent)]
    Taken(#[from] SinkError),
    /// There was a trace, of which this part was not kept.
    #[error(
        "the raw trace around this stall was not kept; raise --trace-limit (now {limit_mib} MiB) when recording"
    )]
    NotKept {
        /// The limit that applied.
        limit_mib: u64,
    },
    /// It is a run of before recorders kept what following threads needs.
    #[error(
        "this run was recorded by version {version}, which did not keep what redoing a run of '{kind}' needs; \
         record it anew, or leave out --reattribute"
    )]
    TooOld {
        /// The recorder's version.
        version: String,
        /// The kind of probe.
        kind: String,
    },
}

/// What a replay came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replayed {
    /// Stalls handed over.
    pub stalls: u64,
    /// Those of them without a verdict: the raw trace around them was not kept.
    pub without_trace: u64,
    /// What became of the threads' time, where threads were followed and all of the trace was kept.
    pub threads: Option<Vec<ThreadAccount>>,
    /// What became of the CPUs' time, where CPUs were watched and all of the trace was kept.
    pub passive: Option<Vec<PassiveCpu>>,
    /// The intervals, where they follow from the trace: of threads that were attached to, and of CPUs that were watched.
    pub intervals: Option<Vec<IntervalRow>>,
    /// The proof of the correlation, where all of the trace was kept.
    pub events_in_gaps: Option<EventsInGaps>,
}

/// Takes a stall, and its attribution where the trace around it was kept.
pub type EachStall<'a> = &'a mut dyn FnMut(&Stall, Option<Attribution>);

/// Attributes every stall of a run again, in order of their numbers, from its raw trace: with the attribution
/// of this version, on any machine. The recorder's steps are taken again one by one, so that the same
/// attribution says the same as it said live. Of threads that were attached to and of CPUs
/// that were watched, the stalls themselves are found again.
///
/// Runs of before recorders kept their steps are attributed from what they kept: those of spinning and of
/// sleeping probes with small differences near the beginning, others not at all.
///
/// # Errors
/// There is no raw trace, it is too old for its kind, or it cannot be read.
pub fn replay(run: &RunReader, each: EachStall<'_>) -> Result<Replayed, ReplayError> {
    let context: TraceContext = run.trace_context()?.ok_or(ReplayError::NoTrace)?;
    let manifest = run.manifest();
    let old = context.setup.is_empty();
    match manifest.probe.kind() {
        Some(ProbeKind::Attach | ProbeKind::Pipeline | ProbeKind::Passive) if old => {
            Err(ReplayError::TooOld {
                version: manifest.tool_version.clone(),
                kind: manifest.probe.kind.clone(),
            })
        }
        Some(ProbeKind::Attach) => threads::attach(run, &context, each),
        Some(ProbeKind::Pipeline) => threads::pipeline(run, &context, each),
        Some(ProbeKind::Passive) => passive::passive(run, &context, each),
        _ if old => old::probes(run, &context, each),
        _ => probes::probes(run, &context, each),
    }
}
