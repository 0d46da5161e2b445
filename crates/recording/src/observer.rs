//! What a recording tells while it runs.

use jitterscope_model::{CpuSet, Nanos, PipelineRole, SinkError, ThreadRef};

/// How far a recording is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Measured so far.
    pub elapsed: Nanos,
    /// To be measured in all.
    pub total: Nanos,
    /// Stalls so far.
    pub stalls: u64,
    /// The longest so far.
    pub worst: Nanos,
}

/// A recording of the pipeline has come to this point.
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

/// Looks on. Called on the thread that called [`record`](crate::record()), a few times a second; it must
/// not block for long, for that thread drains the probes.
pub trait Observer {
    /// The CPUs to measure are known, and where our own threads will keep.
    fn starting(&mut self, _measured: &CpuSet, _helpers: &CpuSet) {}

    /// No thread of this name has been met yet; the time to measure has not begun.
    fn awaiting(&mut self, _name: &str) {}

    /// All is ready and every output has begun: the measurement begins.
    fn measuring(&mut self, _threshold: Nanos) {}

    /// A recording of the pipeline has come to a point.
    fn step(&mut self, _step: Step<'_>) {}

    /// An output takes no more rows; the recording goes on, unless it was for nothing else.
    fn output_failed(&mut self, _output: &str, _why: &SinkError) {}

    /// Some time has passed.
    fn progress(&mut self, _progress: &Progress) {}
}

/// Looks away.
impl Observer for () {}
