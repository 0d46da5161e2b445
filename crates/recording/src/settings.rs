//! What is recorded, resolved from what the user asked for.

use jitterscope_model::{ClockKind, CpuId, CpuSet, EventGrain, Nanos, TuningState};
use jitterscope_platform::{CpuChoice, Topology};
use std::path::PathBuf;

/// What every kind of recording is asked, beside what it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSettings {
    /// The clock, when the user insists on one.
    pub clock: Option<ClockKind>,
    /// Size of the trace buffer of each CPU whose kernel events are recorded, KiB.
    pub trace_buffer_kib: u32,
    /// Raw trace kept with the run at most, bytes.
    pub trace_limit_bytes: u64,
    /// The knobs of the machine as the audit found them, and what was applied; `None` when nobody looked.
    pub tuning: Option<TuningState>,
    /// Which thread takes the rows.
    pub writer: WriterThread,
    /// The user's name for the configuration.
    pub label: String,
    /// Where runs are kept.
    pub runs_dir: PathBuf,
    /// The command line, for the manifest.
    pub command_line: Vec<String>,
}

/// Which thread takes a recording's rows: stores them, sums them up, tells them to every output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriterThread {
    /// One of its own where there are two CPUs or more that are neither measured, nor on the core of one that is, nor
    /// needed by what is recorded. The one that drains where there are fewer: on one CPU two threads would only take
    /// turns.
    #[default]
    WhereRoom,
    /// One of its own, wherever it runs.
    Own,
    /// The one that drains.
    Drain,
}

impl WriterThread {
    /// Whether it is one of its own where our threads have these CPUs, on which so many others run that are recorded.
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
    /// Time between deadlines.
    pub period: Nanos,
    /// Whether deep idle states are kept off meanwhile.
    pub hold_latency: bool,
    /// Which of the measured CPUs is there to compare with. It has our own threads too when no other CPU
    /// is left for them.
    pub idle_control: Option<CpuId>,
}

/// Settings of one recording.
#[derive(Clone, Debug)]
pub struct RecordSettings {
    /// What every kind of recording is asked.
    pub run: RunSettings,
    /// CPUs to measure.
    pub cpus: CpuChoice,
    /// Sleep and wake in place of spinning.
    pub wakeup: Option<WakeupChoice>,
    /// Length of the measurement.
    pub duration: Nanos,
    /// Least length of the discarded warm-up, from when the probes run. Spinning ones with kernel events go on until
    /// eight stalls of each CPU were recorded, for up to a tenth of a second after those are set up; not where this is
    /// zero.
    pub warmup: Nanos,
    /// Deltas at or above this are stalls. `None`: what the clock allows, from 300 ns on; 50 us where the probe
    /// sleeps.
    pub threshold: Option<Nanos>,
    /// Length of a reporting interval.
    pub interval: Nanos,
    /// SCHED_FIFO priority of the probes.
    pub fifo_priority: Option<u32>,
    /// Which kernel events are recorded; `None` for none.
    pub events: Option<EventGrain>,
    /// Kernel functions to look into, with all that they call; `culprit` for all that the kernel does for others.
    pub graph: Vec<String>,
}

impl RecordSettings {
    /// The shortest of some round lengths of which a report shows each by itself.
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

/// The CPU that is measured to compare with: one that is not measured for itself; `None` when every usable one
/// is. With more than one to choose from, our own threads keep to the others.
#[must_use]
pub fn idle_control(chosen: &CpuSet, topology: &Topology, allowed: &CpuSet) -> Option<CpuId> {
    allowed
        .intersection(&topology.online)
        .difference(chosen)
        .last()
}
