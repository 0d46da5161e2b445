//! Resolved settings of a recording.

use jitterscope_model::{
    AskedEvent, ClockKind, CpuId, CpuSet, EventGrain, Nanos, ProfileLimit, TuningState,
};
use jitterscope_platform::{CpuChoice, Topology};
use std::path::PathBuf;

/// The settings common to all kinds of recordings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSettings {
    /// The clock, if the user chose one.
    pub clock: Option<ClockKind>,
    /// Trace buffer size, in KiB, of each CPU whose kernel events are recorded.
    pub trace_buffer_kib: u32,
    /// Maximum size of the stored raw trace, bytes.
    pub trace_limit_bytes: u64,
    /// Events that the user asked for, recorded beside those of the recording's own: see [`crate::check_asked`].
    pub asked: Vec<AskedEvent>,
    /// The machine's knobs as the audit found them, and what was applied; `None` without an audit.
    pub tuning: Option<TuningState>,
    pub writer: WriterThread,
    /// The user's label for the configuration.
    pub label: String,
    /// The directory for runs.
    pub runs_dir: PathBuf,
    /// The command line, for the manifest.
    pub command_line: Vec<String>,
    /// What the profile demands, for the manifest.
    pub profile: Option<ProfileLimit>,
}

/// The thread that takes a recording's rows: stores them, sums them up and hands them to every output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriterThread {
    /// A writer thread if at least two CPUs are neither measured, nor on the core of a measured one, nor needed by the
    /// target. Otherwise the draining thread: on one CPU two threads would only alternate.
    #[default]
    WhereRoom,
    /// Always a writer thread.
    Own,
    Drain,
}

impl WriterThread {
    /// Whether to use a writer thread, given our threads' CPUs and the number of recorded threads that also run on
    /// them.
    pub(crate) fn is_own(self, helpers: &CpuSet, beside_us: usize) -> bool {
        match self {
            WriterThread::WhereRoom => helpers.len() >= 2 + beside_us,
            WriterThread::Own => true,
            WriterThread::Drain => false,
        }
    }
}

/// The wake-up probe instead of the spinning one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeupChoice {
    pub period: Nanos,
    /// Whether deep idle states are disabled during the measurement.
    pub hold_latency: bool,
    /// The measured CPU that serves for comparison. Our own threads also run on it if they have no other CPU.
    pub idle_control: Option<CpuId>,
}

#[derive(Clone, Debug)]
pub struct RecordSettings {
    /// The settings of every kind of recording.
    pub run: RunSettings,
    pub cpus: CpuChoice,
    /// Sleep and wake instead of spinning.
    pub wakeup: Option<WakeupChoice>,
    /// Length of the measurement.
    pub duration: Nanos,
    /// Minimum length of the discarded warm-up, from the time the probes run. Spinning probes with kernel events
    /// continue until eight stalls of each CPU were recorded, for up to a tenth of a second after the events are set
    /// up, unless this is zero.
    pub warmup: Nanos,
    /// Deltas at or above this are stalls. `None`: what the clock allows, at least 300 ns; 50 us for a sleeping probe.
    pub threshold: Option<Nanos>,
    /// Length of a reporting interval.
    pub interval: Nanos,
    /// SCHED_FIFO priority of the probes.
    pub fifo_priority: Option<u32>,
    /// Which kernel events are recorded; `None`: no events.
    pub events: Option<EventGrain>,
    /// Kernel functions to trace, with everything that they call; `culprit` traces everything that the kernel does for
    /// other threads.
    pub graph: Vec<String>,
}

impl RecordSettings {
    /// The shortest of several round lengths at which a report shows every interval.
    #[must_use]
    pub fn default_interval(duration: Nanos) -> Nanos {
        const STEPS_SHOWN: u64 = 60;
        let round = [100, 200, 500].map(|ms| Nanos(ms * 1_000_000));
        round
            .into_iter()
            .find(|interval| duration.0 <= interval.0 * STEPS_SHOWN)
            .unwrap_or(Nanos(1_000_000_000))
    }

    pub(crate) fn idle_control(&self) -> Option<CpuId> {
        self.wakeup.and_then(|choice| choice.idle_control)
    }
}

/// The CPU measured for comparison: one that is not measured otherwise; `None` if there is none. With several
/// candidates, our own threads use the others.
#[must_use]
pub fn idle_control(chosen: &CpuSet, topology: &Topology, allowed: &CpuSet) -> Option<CpuId> {
    allowed
        .intersection(&topology.online)
        .difference(chosen)
        .last()
}
