//! Everything about one recording except its rows.

use crate::{
    AnyVersion, ClockKind, CpuId, CpuSet, CpusBecause, KernelAddr, Nanos, ProbeResult,
    SourceReport, TickRate, Ticks, Warning,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the JSON reports. A version only ever gains fields.
pub const SCHEMA_VERSION: u32 = 2;

/// One moment on several clocks, for mapping ticks to other tools' times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    pub ticks: Ticks,
    /// `CLOCK_MONOTONIC_RAW`, nanoseconds.
    pub monotonic_raw_ns: u64,
    /// `CLOCK_REALTIME`, nanoseconds since the epoch.
    pub realtime_ns: u64,
    /// `CLOCK_BOOTTIME`, nanoseconds; `None` if the recorder did not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boottime_ns: Option<u64>,
    /// The uncertainty of the pairing: ticks from the first to the last of the readings.
    pub width_ticks: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeSettings {
    /// A word of [`crate::ProbeKind`].
    pub kind: String,
    pub cpus: CpuSet,
    /// Why these CPUs were chosen if the user named none.
    pub cpus_chosen_because: Option<AnyVersion<CpusBecause>>,
    /// The requested length of the measurement.
    pub duration_ns: Nanos,
    /// Length of the discarded warm-up.
    pub warmup_ns: Nanos,
    /// The threshold: deltas of at least this length are stalls.
    pub threshold_ns: Nanos,
    /// The cost of reading the clock and of storing a stall, measured before a spinning probe starts; `None` for other
    /// probes, and for runs of version 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_costs: Option<ClockCosts>,
    /// Length of a reporting interval.
    pub interval_ns: Nanos,
    /// SCHED_FIFO priority; `None` for the fair class.
    pub fifo_priority: Option<u32>,
    /// Settings of the wake-up probe; `None` for other probes, and for runs of version 0.1.
    #[serde(default)]
    pub wakeup: Option<crate::WakeupConditions>,
    /// The classes of kernel events that were enabled, if any.
    #[serde(default)]
    pub event_grain: crate::EventGrain,
}

impl ProbeSettings {
    /// The kind of recording; `None` for a kind of a newer version.
    #[must_use]
    pub fn kind(&self) -> Option<crate::ProbeKind> {
        crate::ProbeKind::from_word(&self.kind)
    }
}

/// The spinning probe's own overhead, on the worst of its CPUs: a stall as short as this cannot be distinguished from
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockCosts {
    /// The 99.9th percentile of clock reads, measured at the least disturbed moment.
    pub read_tail_ns: Nanos,
    /// The 99th percentile of storing a stall, measured likewise.
    pub store_ns: Nanos,
    /// Whether the threshold was derived from these, and not set by the user.
    pub decide_threshold: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    pub hostname: String,
    /// `uname -r`.
    pub kernel_release: String,
    /// `uname -v`.
    pub kernel_version: String,
    pub arch: String,
    pub cpu_model: String,
    pub cmdline: String,
    pub online: CpuSet,
    pub isolated: CpuSet,
    /// CPUs whose tick can stop while busy.
    pub nohz_full: CpuSet,
    /// The hypervisor's signature, in a virtual machine.
    pub hypervisor: Option<String>,
    /// The kernel's id of the boot: with it a process id of the run still means the same. `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
}

/// The overhead of the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SelfNoise {
    /// CPUs that our own threads were confined to; empty if none was free.
    pub helper_cpus: CpuSet,
    /// CPU time of our own threads, nanoseconds.
    pub helper_cpu_ns: Nanos,
    /// Peak resident memory of the whole process, bytes.
    pub peak_rss_bytes: u64,
    /// Entry cost granted to a culprit: the smallest lead of the run.
    pub entry_cost_ns: Nanos,
    /// Exit cost granted to a culprit: the smallest trail of the run.
    pub exit_cost_ns: Nanos,
    /// The number of stalls that the entry cost was measured on.
    pub cost_samples: u64,
    /// The overhead of recording kernel events; `None` without them, and for older runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<crate::EventPrice>,
}

/// The increase of one kernel counter on one CPU during the measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CounterTotal {
    pub cpu: crate::CpuId,
    /// File and name: `interrupt LOC (Local timer interrupts)`, `softirq NET_RX`.
    pub name: String,
    /// How much it rose.
    pub total: u64,
    /// Pearson's correlation, over the reporting intervals, of its increase with the time stolen from the CPU; `None`
    /// if there are too few intervals or either never varied.
    pub correlation: Option<f64>,
}

/// The cost of one class of edge, as measured before the measurement: repeating the attribution needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeCostRow {
    /// Class of edge: `lead_interrupt`, `trail_switch`, ...
    pub edge: String,
    /// The smallest edge, ticks.
    pub smallest_ticks: Ticks,
    /// The number of such edges.
    pub samples: u64,
}

/// A work item that slept when a CPU's measurement began: repeating the attribution needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SleepingWork {
    /// The CPU that it sleeps on.
    pub cpu: CpuId,
    /// Its worker.
    pub tid: i32,
    /// When the worker left the CPU.
    pub left: Ticks,
    /// When the item began.
    pub begun: Ticks,
    /// The item's address.
    pub work: u64,
    pub function: KernelAddr,
}

/// The check of the correlation: kernel events of the measured CPUs, and how many are inside stalls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsInGaps {
    /// Kernel events recorded on measured CPUs during the measurement.
    pub events: u64,
    /// Events inside a recorded gap.
    pub inside: u64,
    /// Events outside of all gaps that belong to kernel activity shorter than the threshold: these need no gap.
    #[serde(default, skip_serializing_if = "is_none")]
    pub too_short: u64,
    /// Control: events that were compared after a random shift in time, a different one for each. Only a sample, if
    /// there are very many.
    pub control_events: u64,
    /// Control: shifted events that are still inside a recorded gap.
    pub control_inside: u64,
}

impl EventsInGaps {
    /// Events that must be in a gap.
    #[must_use]
    pub fn due(&self) -> u64 {
        self.events.saturating_sub(self.too_short)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// The stored part of the raw trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTrace {
    pub bytes: u64,
    /// Whether the trace is complete; otherwise only the surroundings of the worst stalls are stored.
    pub complete: bool,
    /// The size limit, bytes.
    pub limit_bytes: u64,
}
/// Everything about a run except its rows and its machine: `details.json`. Its head is [`crate::RunHead`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunManifest {
    /// [`crate::RUN_SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    pub tool_version: String,
    /// Unique short id.
    pub id: String,
    /// Process id of the recorder, as the kernel's records show it; `None` for older runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorder_pid: Option<i32>,
    /// The user's name for the configuration.
    pub label: String,
    /// The command line, as given.
    pub command_line: Vec<String>,
    pub host: HostFacts,
    pub clock: ClockKind,
    pub rate: TickRate,
    /// Clocks at the start of the measurement.
    pub clock_start: ClockReading,
    /// Clocks at its end.
    pub clock_end: ClockReading,
    pub probe: ProbeSettings,
    /// What the profile of the recording demands; `None` without a profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<crate::ProfileLimit>,
    /// Results, one per CPU.
    pub results: Vec<ProbeResult>,
    /// Full lateness results, one per CPU, for a wake-up probe.
    #[serde(default)]
    pub wakeups: Vec<crate::WakeupResult>,
    /// Time accounts of the followed threads.
    #[serde(default)]
    pub threads: Vec<crate::ThreadAccount>,
    /// The pipeline's measurements, for a pipeline run; then `results` is empty.
    #[serde(default)]
    pub pipeline: Option<crate::PipelineResult>,
    /// Time accounts of CPUs that were watched without a probe.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passive: Vec<crate::PassiveCpu>,
    /// Whether stalls were attributed from kernel events (else only counted).
    pub attributed: bool,
    /// Events that the user asked for, and were recorded as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<crate::AskedEventRecords>,
    /// Sources of evidence, with their losses.
    pub sources: Vec<SourceReport>,
    /// Kernel counters that rose on measured CPUs during the run; only evidence by correlation.
    pub counters: Vec<CounterTotal>,
    /// Costs of edges at the start of the measurement.
    #[serde(default)]
    pub edge_costs: Vec<EdgeCostRow>,
    /// Work items that slept on the measured CPUs at the start of the measurement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sleeping_works: Vec<SleepingWork>,
    /// The check of the correlation.
    pub events_in_gaps: EventsInGaps,
    /// Records of senders that were dropped because there were too many at once. The kernel recorded these senders, but
    /// attribution does not know them.
    #[serde(default)]
    pub senders_dropped: u64,
    /// The overhead of the measurement.
    pub self_noise: SelfNoise,
    /// The stored part of the raw trace.
    pub trace: StoredTrace,
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// Whether the recorder was killed. The next start finished the run from the rows and the trace that were on the
    /// disk; what only the recorder's memory held is missing, and zero here. See `Warning::Killed`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub killed: bool,
    /// The moment that the rows surround, if `watch` saved the run; then the measurement was longer than the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moment: Option<crate::SavedMoment>,
    /// The file that the records come from, if another tool recorded them. Then nothing was measured here: there is no
    /// probe, no machine state and no overhead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<crate::Imported>,
    /// Another tool's records, if the run's own stalls are attributed by them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<crate::AddedRecords>,
    pub warnings: Vec<Warning>,
}

impl RunManifest {
    /// Whether the run was made from rows and trace alone, because its recorder was killed, or still runs: what only
    /// the recorder's memory holds is missing, and zero here.
    #[must_use]
    pub fn is_from_rows(&self) -> bool {
        self.killed || self.moment.is_some()
    }

    /// First and last moment of the measurement on the measuring clock; `None` if nothing was measured.
    #[must_use]
    pub fn span(&self) -> Option<(Ticks, Ticks)> {
        if let Some(pipeline) = &self.pipeline {
            return Some((pipeline.start, pipeline.end));
        }
        let spun = self.results.iter().map(|r| (r.start, r.end));
        let followed = self
            .threads
            .iter()
            .map(|thread| (thread.from, thread.until));
        let watched = self
            .passive
            .iter()
            .map(|cpu| (cpu.from_ticks, cpu.until_ticks));
        let met = spun
            .chain(followed)
            .chain(watched)
            .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        // A recording that waited in vain for threads searched for them all the time. Where the recorder was killed, its
        // rows say how far it came.
        met.or_else(|| {
            (self.is_from_rows() || self.probe.kind() == Some(crate::ProbeKind::Attach))
                .then_some((self.clock_start.ticks, self.clock_end.ticks))
        })
    }

    /// Start of the measurement, nanoseconds since the epoch.
    #[must_use]
    pub fn started_realtime_ns(&self) -> u64 {
        self.realtime_ns(
            self.span()
                .map_or(self.clock_start.ticks, |(first, _)| first),
        )
    }

    /// From the first clock read of any CPU to the last.
    #[must_use]
    pub fn duration(&self) -> Nanos {
        let (first, last) = self.span().unwrap_or_default();
        self.rate.nanos(last.since(first))
    }

    /// The time in which stalls could be detected; the sum over CPUs if each had its own probe.
    #[must_use]
    pub fn measured_time(&self) -> Nanos {
        if !self.passive.is_empty() {
            return self.passive.iter().map(crate::PassiveCpu::watched_ns).sum();
        }
        if self.results.is_empty() {
            let (first, last) = self.span().unwrap_or_default();
            return self.rate.nanos(last.since(first));
        }
        let control = self.idle_control();
        let measured = self
            .results
            .iter()
            .filter(|result| Some(result.cpu) != control);
        measured
            .map(|r| self.rate.nanos(r.end.since(r.start)))
            .sum()
    }

    /// The CPU that was measured only as a baseline for the others.
    #[must_use]
    pub fn idle_control(&self) -> Option<crate::CpuId> {
        self.probe
            .wakeup
            .as_ref()
            .and_then(|wakeup| wakeup.idle_control)
    }

    /// Maps an instant of the measuring clock to nanoseconds since the epoch, from the pair of clock readings at the
    /// start: a step of the wall clock during the run does not distort the result.
    #[must_use]
    pub fn realtime_ns(&self, at: Ticks) -> u64 {
        self.clock_start.realtime_of(at, self.rate)
    }
}

impl ClockReading {
    /// `at` in nanoseconds since the epoch, based on this reading.
    #[must_use]
    pub fn realtime_of(&self, at: Ticks, rate: TickRate) -> u64 {
        self.moved(self.realtime_ns, at, rate)
    }

    /// `at` in nanoseconds of a clock that read `clock_ns` at this moment, based on this reading.
    #[must_use]
    pub fn moved(&self, clock_ns: u64, at: Ticks, rate: TickRate) -> u64 {
        if at >= self.ticks {
            clock_ns.saturating_add(rate.nanos(at.since(self.ticks)).0)
        } else {
            clock_ns.saturating_sub(rate.nanos(self.ticks.since(at)).0)
        }
    }
}
