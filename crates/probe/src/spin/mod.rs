//! The spin probe: reads the clock back to back and accounts for every delta.
//!
//! The reads are chained: each ends one delta and begins the next. All work between two reads, including the probe's
//! own bookkeeping, therefore lies inside a measured delta, and the deltas sum to the whole time from the first read to
//! the last. In particular, the clock is not read again after a gap was stored: that would leave a hole in which kernel
//! events go unnoticed.

mod costs;
mod counts;
mod thread;

pub use costs::{ClockCosts, clock_costs};

use jitterscope_clock::Clock;
use jitterscope_model::{CpuId, Gap, ProbeResult, Ticks};
use jitterscope_platform::PinError;
use rtrb::{Consumer, RingBuffer};
use std::sync::Arc;

use crate::control::ProbeControl;
use crate::gap_queue::GapQueue;
use counts::Stalls;
use thread::Spinner;

#[derive(Clone, Copy, Debug)]
pub struct SpinSettings {
    pub cpu: CpuId,
    /// Deltas of at least this many ticks are stalls. Shorter ones are counted per tick in a table of this size; at
    /// most [`SpinSettings::MAX_THRESHOLD`].
    pub threshold: Ticks,
    /// Length of a reporting interval.
    pub interval: Ticks,
    /// How often the probe checks whether to end.
    pub poll: Ticks,
    /// SCHED_FIFO priority, `None` for the fair class.
    pub fifo_priority: Option<u32>,
    /// Capacity of the queue of stalls to the drain thread. Its second half is reserved for increasingly long stalls.
    pub queue: usize,
    /// A delta directly after a stall that is no longer than this is the probe's own bookkeeping: it is counted but not
    /// sent, because sending it would lengthen the next one. Zero if the threshold is well above it.
    pub own: Ticks,
}

impl SpinSettings {
    /// The largest threshold: the tables of counts then take 8 MiB.
    pub const MAX_THRESHOLD: Ticks = Ticks(1 << 17);
    /// A probe that warms up checks this many times as often as [`SpinSettings::poll`] says whether to begin, because
    /// the thread that sets the start waits for it.
    pub const WARM_UP_LOOKS: u64 = 10;
}

/// A probe that cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SpinError {
    /// Pinning or the scheduling class was refused.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// The threshold exceeds the per-tick table.
    #[error("a threshold of {0:?} is out of range: 1 to {max} ticks", max = SpinSettings::MAX_THRESHOLD.0)]
    Threshold(Ticks),
    /// The histogram of stalls cannot be made.
    #[error("the histogram of stalls cannot be made: {0}")]
    Histogram(#[from] hdrhistogram::CreationError),
}

/// The stalls of one reporting interval, exact even if records were dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntervalMark {
    /// Start of the interval.
    pub start: Ticks,
    /// Its end: the first read at or after the planned one.
    pub end: Ticks,
    /// Stalls that ended in it.
    pub count: u64,
    pub max: Ticks,
    pub sum: Ticks,
}

/// The receiving end of one probe, for a thread on another CPU.
pub struct SpinOutput {
    pub cpu: CpuId,
    /// Every stall in order, including the warm-up, with [`Gap::measurement_begins`] between the two.
    pub gaps: Consumer<Gap>,
    /// Every completed interval of the measurement, in order.
    pub intervals: Consumer<IntervalMark>,
}

impl SpinOutput {
    /// Discards the stalls so far. Called before the measurement.
    pub fn forget(&mut self) {
        while self.gaps.pop().is_ok() {}
    }
}

/// A spin probe with its memory allocated, not yet on its CPU.
pub struct SpinProbe<C: Clock> {
    clock: C,
    settings: SpinSettings,
    spinner: Spinner,
}

/// Capacity of the interval queue: a second at the shortest interval of 1 ms.
const INTERVAL_QUEUE: usize = 1024;

impl<C: Clock> SpinProbe<C> {
    /// Allocates everything that the probe will touch.
    ///
    /// # Errors
    /// The threshold is out of range.
    pub fn new(clock: C, settings: SpinSettings) -> Result<(SpinProbe<C>, SpinOutput), SpinError> {
        if settings.threshold.0 == 0 || settings.threshold > SpinSettings::MAX_THRESHOLD {
            return Err(SpinError::Threshold(settings.threshold));
        }
        let (gap_sender, gaps) = GapQueue::new(settings.queue, settings.threshold);
        let (interval_sender, intervals) = RingBuffer::new(INTERVAL_QUEUE);
        let stalls = Stalls::new()?;
        let spinner = Spinner::new(settings, stalls, gap_sender, interval_sender);
        let output = SpinOutput {
            cpu: settings.cpu,
            gaps,
            intervals,
        };
        Ok((
            SpinProbe {
                clock,
                settings,
                spinner,
            },
            output,
        ))
    }

    /// Runs on the calling thread, which it pins: warms up until [`ProbeControl::measure`]'s start, and measures until
    /// its end or until [`ProbeControl::stop`].
    ///
    /// # Errors
    /// The thread cannot be put on its CPU or in its scheduling class.
    pub fn run(mut self, control: &Arc<ProbeControl>) -> Result<ProbeResult, SpinError> {
        jitterscope_platform::pin_current_thread(self.settings.cpu)?;
        if let Some(priority) = self.settings.fifo_priority {
            jitterscope_platform::set_fifo(priority)?;
        }
        self.spinner.prefault();
        control.report_ready();
        self.spinner.warm_up(self.clock, control);
        let before = jitterscope_platform::thread_usage();
        self.spinner.measure(self.clock, control);
        let after = jitterscope_platform::thread_usage();
        let mut result = self.spinner.result();
        result.page_faults = after.page_faults.saturating_sub(before.page_faults);
        result.involuntary_switches = after
            .involuntary_switches
            .saturating_sub(before.involuntary_switches);
        Ok(result)
    }
}
