//! Replays a stored run from its raw trace.

mod breaks;
mod passive;
mod probes;
mod steps;
mod summary;
mod threads;
mod timeline;

pub(crate) use probes::ProbeTurns;
pub use summary::reattributed;
pub use timeline::{stall_timeline, stall_timelines};

use jitterscope_model::{
    Attribution, EventsInGaps, IntervalRow, PassiveCpu, ProbeKind, SinkError, Stall, ThreadAccount,
};
use jitterscope_source::{ContextError, TraceContext};
use jitterscope_store::{RunReader, StoreError};

/// Why a stored run or stall cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The run cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The run's description of its pages is unusable.
    #[error("the run's trace cannot be decoded: {0}")]
    Context(#[from] ContextError),
    #[error(
        "this run has no kernel events: it was recorded with --no-trace, or where tracefs could not be used"
    )]
    NoTrace,
    /// Its raw trace was given up or not wanted.
    #[error(
        "the raw trace of this run was not kept: it was to be at most {} KiB (--trace-limit), and it is given up when the \
         disk is nearly full. To keep it, record with a larger --trace-limit and room on the disk",
        limit >> 10
    )]
    TraceNotKept {
        /// The limit in force, bytes.
        limit: u64,
    },
    /// Somebody removed its raw trace.
    #[error(
        "the raw trace of this run ({} KiB) was kept, but is no longer in its folder. To have it next time, keep the \
         folder 'trace' of the run",
        bytes.div_ceil(1 << 10)
    )]
    TraceRemoved {
        /// Its size, bytes.
        bytes: u64,
    },
    /// The receiver of the stalls accepts no more.
    #[error(transparent)]
    Taken(#[from] SinkError),
    /// There is a trace, but this part was not kept.
    #[error(
        "the raw trace around this stall was not kept; raise --trace-limit (now {} KiB) when recording",
        limit >> 10
    )]
    NotKept {
        /// The limit in force, bytes.
        limit: u64,
    },
    /// The run's trace lacks the recorder's setup steps.
    #[error(
        "this run does not say how its recorder was set up, so its verdicts cannot be made again"
    )]
    NoSetup,
}

/// The result of a replay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replayed {
    pub stalls: u64,
    /// Stalls without a verdict, because the raw trace around them was not kept.
    pub without_trace: u64,
    /// What the threads' time was spent on, if threads were followed and the whole trace was kept.
    pub threads: Option<Vec<ThreadAccount>>,
    /// What the CPUs' time was spent on, if CPUs were watched and the whole trace was kept.
    pub passive: Option<Vec<PassiveCpu>>,
    /// The intervals, if they follow from the trace: with attached threads and with watched CPUs.
    pub intervals: Option<Vec<IntervalRow>>,
    /// The proof of the correlation, if the whole trace was kept.
    pub events_in_gaps: Option<EventsInGaps>,
}

/// Receives a stall, and its attribution if the trace around it was kept.
pub type EachStall<'a> = &'a mut dyn FnMut(&Stall, Option<Attribution>);

/// Attributes every stall of a run again from its raw trace, in order of stall numbers, with this version's
/// attribution. Works on any machine. It repeats the recorder's steps one by one, so an unchanged attribution gives the
/// live results. With attached threads and watched CPUs, it also finds the stalls themselves again.
///
/// # Errors
/// There is no raw trace, it lacks the recorder's setup steps, or it cannot be read.
pub fn replay(run: &RunReader, each: EachStall<'_>) -> Result<Replayed, ReplayError> {
    let context = context(run)?;
    if context.setup.is_empty() {
        return Err(ReplayError::NoSetup);
    }
    match run.manifest().probe.kind() {
        Some(ProbeKind::Attach) => threads::attach(run, &context, each),
        Some(ProbeKind::Pipeline) => threads::pipeline(run, &context, each),
        Some(ProbeKind::Passive) => passive::passive(run, &context, each),
        _ => probes::probes(run, &context, each),
    }
}

/// What decodes the raw trace of a run.
fn context(run: &RunReader) -> Result<TraceContext, ReplayError> {
    let manifest = run.manifest();
    let missing = || match (manifest.attributed, &manifest.trace) {
        (false, _) => ReplayError::NoTrace,
        (true, trace) if trace.bytes == 0 => ReplayError::TraceNotKept {
            limit: trace.limit_bytes,
        },
        (true, trace) => ReplayError::TraceRemoved { bytes: trace.bytes },
    };
    run.trace_context()?.ok_or_else(missing)
}
