//! Reports of a running recording.

use jitterscope_model::{CpuSet, Nanos, PipelineRole, SinkError, ThreadRef};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub elapsed: Nanos,
    /// To be measured in all.
    pub total: Nanos,
    pub stalls: u64,
    /// The longest so far.
    pub worst: Nanos,
}

/// A point in a recording of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// The threads are about to start.
    Starting,
    /// The threads are on their CPUs, their memory is faulted in, and the warm-up begins.
    Threads(&'a [(PipelineRole, ThreadRef)]),
    /// The warm-up has ended and was discarded.
    WarmUpComplete,
    /// Nothing is sent for this long.
    Pausing(Nanos),
    Executing,
}

/// Receives progress. Called on the thread that called [`record`](crate::record()), a few times a second; it must not
/// block for long, because that thread drains the probes.
pub trait Observer {
    /// The CPUs to measure, and those that our own threads will use.
    fn starting(&mut self, _measured: &CpuSet, _helpers: &CpuSet) {}

    /// No thread of this name exists yet; the measurement has not begun.
    fn awaiting(&mut self, _name: &str) {}

    /// Everything is ready and every output has begun: the measurement begins.
    fn measuring(&mut self, _threshold: Nanos) {}

    /// A recording of the pipeline has reached a step.
    fn step(&mut self, _step: Step<'_>) {}

    /// An output takes no more rows; the recording goes on, unless the output was essential.
    fn output_failed(&mut self, _output: &str, _why: &SinkError) {}

    fn progress(&mut self, _progress: &Progress) {}
}

impl Observer for () {}
