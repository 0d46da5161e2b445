//! What a recording of the pipeline tells while it runs.

use crate::observer::Progress;
use jitterscope_model::{Nanos, PipelineRole, ThreadRef};

/// A recording has come to this point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// The threads are about to start.
    Starting,
    /// They are on their CPUs, their memory is faulted in, and the warm-up begins.
    Threads(&'a [(PipelineRole, ThreadRef)]),
    /// The warm-up has ended and was forgotten.
    WarmUpComplete,
    /// Nothing is sent for this long.
    Pausing(Nanos),
    /// The measurement begins.
    Executing,
}

/// Looks on. Called on the draining thread; it must not block for long.
pub trait PipelineObserver {
    /// The recording has come to a point.
    fn step(&mut self, _step: Step<'_>) {}

    /// Some time has passed.
    fn progress(&mut self, _progress: &Progress) {}
}

/// Looks away.
impl PipelineObserver for () {}
