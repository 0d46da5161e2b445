//! The interface between a recording of the pipeline and the follower of its threads in the kernel.

use crate::kernel_events::{EventsEnded, KernelEvents};
use jitterscope_attribute::GroupThrottled;
use jitterscope_model::{
    Attribution, CpuId, PipelineRole, Sink, SinkError, Stall, ThreadAccount, ThreadRef, Ticks,
};
use jitterscope_probe::pipeline::SlowMessage;
use std::collections::BTreeMap;

/// A slow message and the stall that represents it in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlowRow {
    /// As its consumer saw it.
    pub(crate) message: SlowMessage,
    /// The victim is the consumer, from the intended publication to the reception. The CPU is the one that the consumer
    /// was pinned to, or else the one where it was last seen.
    pub(crate) stall: Stall,
}

/// Follows the pipeline's threads. It is created before they start, because switching on kernel events interrupts every
/// CPU. The draining thread makes all calls; it stays off the pipeline's CPUs.
pub(crate) trait Follower {
    fn threads(&mut self, threads: &[(PipelineRole, ThreadRef)]);

    /// The schedule begins at `start` and ends at `end`, or with the last message if `end` is `None`.
    fn measuring(&mut self, start: Ticks, end: Option<Ticks>);

    /// Called about every 50 ms, also without rows in the warm-up and the pause. The rows were popped before this call,
    /// so the kernel's buffers contain everything up to their reception. Returns the attribution of each row in order,
    /// or nothing if there is none. Pages go to `keep`.
    fn cycle(
        &mut self,
        slow: &[SlowRow],
        keep: &mut dyn Sink,
    ) -> Result<Vec<Attribution>, SinkError>;

    /// The threads have ended, the last one at `end`.
    fn finish(
        self: Box<Self>,
        end: Ticks,
        keep: &mut dyn Sink,
    ) -> Result<Option<Followed>, SinkError>;
}

pub(crate) struct Followed {
    /// What the threads' time was spent on.
    pub(crate) threads: Vec<ThreadAccount>,
    /// The results of kernel event recording.
    pub(crate) ended: EventsEnded,
    /// Switches that the kernel did not record.
    pub(crate) unrecorded_switches: BTreeMap<CpuId, u64>,
    /// Waiting time for which only sums were kept.
    pub(crate) folded: Ticks,
    pub(crate) senders_dropped: u64,
    /// Throttled control groups above our threads.
    pub(crate) throttled: Vec<GroupThrottled>,
    /// Kernel events of the measured time.
    pub(crate) events: u64,
    /// Recording has stopped, but the tracing instances still exist.
    pub(crate) recorder: KernelEvents,
}

/// Follows nothing: slow messages are reported without a cause.
#[derive(Debug, Default)]
pub(crate) struct Blind;

impl Follower for Blind {
    fn threads(&mut self, _threads: &[(PipelineRole, ThreadRef)]) {}

    fn measuring(&mut self, _start: Ticks, _end: Option<Ticks>) {}

    fn cycle(
        &mut self,
        _slow: &[SlowRow],
        _keep: &mut dyn Sink,
    ) -> Result<Vec<Attribution>, SinkError> {
        Ok(Vec::new())
    }

    fn finish(
        self: Box<Self>,
        _end: Ticks,
        _keep: &mut dyn Sink,
    ) -> Result<Option<Followed>, SinkError> {
        Ok(None)
    }
}
