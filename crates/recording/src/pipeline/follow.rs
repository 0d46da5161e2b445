//! The seam between a recording of the pipeline and whoever follows its threads through the kernel.

use crate::kernel_events::{EventsEnded, KernelEvents};
use jitterscope_attribute::GroupThrottled;
use jitterscope_model::{
    Attribution, CpuId, PipelineRole, Sink, SinkError, Stall, ThreadAccount, ThreadRef, Ticks,
};
use jitterscope_probe::pipeline::SlowMessage;
use std::collections::BTreeMap;

/// A slow message and the stall that stands for it in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlowRow {
    /// As its consumer saw it.
    pub(crate) message: SlowMessage,
    /// Victim: the consumer. From the intended publication to the reception. The CPU is where the consumer
    /// was pinned, or else where it was last seen.
    pub(crate) stall: Stall,
}

/// Follows the pipeline's threads. It is made before they start, for switching on kernel events interrupts
/// every CPU; all calls come from the draining thread, which keeps off the pipeline's CPUs.
pub(crate) trait Follower {
    /// The threads are on their CPUs and wait for the warm-up.
    fn threads(&mut self, threads: &[(PipelineRole, ThreadRef)]);

    /// The schedule begins at `start`; it ends at `end`, or with the last message where that is not known.
    fn measuring(&mut self, start: Ticks, end: Option<Ticks>);

    /// Every 50 ms or so, in the warm-up and the pause too (without rows then). The rows were popped before
    /// this call: what the kernel did up to their reception is in its buffers by now. Returns the attribution
    /// of each row, in their order, or nothing when there is none. Pages go to `keep`.
    fn cycle(
        &mut self,
        slow: &[SlowRow],
        keep: &mut dyn Sink,
    ) -> Result<Vec<Attribution>, SinkError>;

    /// The threads have ended, the last of them at `end`.
    fn finish(
        self: Box<Self>,
        end: Ticks,
        keep: &mut dyn Sink,
    ) -> Result<Option<Followed>, SinkError>;
}

/// What was seen of the threads.
pub(crate) struct Followed {
    /// What became of their time.
    pub(crate) threads: Vec<ThreadAccount>,
    /// What recording the kernel's events left.
    pub(crate) ended: EventsEnded,
    /// Switches that the kernel did not record.
    pub(crate) unrecorded_switches: BTreeMap<CpuId, u64>,
    /// Time that they waited of which only sums were kept.
    pub(crate) folded: Ticks,
    /// Records of senders that were dropped.
    pub(crate) senders_dropped: u64,
    /// Control groups of ours that were throttled.
    pub(crate) throttled: Vec<GroupThrottled>,
    /// Kernel events of the measured time.
    pub(crate) events: u64,
    /// Nothing is recorded any more, but the tracing instances are still there.
    pub(crate) recorder: KernelEvents,
}

/// Follows nothing: messages are slow, and no reason is reported.
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
