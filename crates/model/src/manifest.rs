//! What one recording was: everything but its rows.

use crate::{
    AnyVersion, ClockKind, CpuId, CpuSet, CpusBecause, KernelAddr, Nanos, ProbeResult,
    SourceReport, TickRate, Ticks, Warning,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the JSON reports. Fields are only ever added under one number.
pub const SCHEMA_VERSION: u32 = 2;

/// One moment on three clocks, to map ticks to real time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// The measuring clock.
    pub ticks: Ticks,
    /// `CLOCK_MONOTONIC_RAW`, nanoseconds.
    pub monotonic_raw_ns: u64,
    /// `CLOCK_REALTIME`, nanoseconds since the epoch.
    pub realtime_ns: u64,
    /// How far apart the readings may be: ticks from the first to the last of the three.
    pub width_ticks: u64,
}

/// How the probe was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeSettings {
    /// A word of [`crate::ProbeKind`].
    pub kind: String,
    /// CPUs measured.
    pub cpus: CpuSet,
    /// Why these CPUs, when the user named none.
    pub cpus_chosen_because: Option<AnyVersion<CpusBecause>>,
    /// Asked-for length of the measurement.
    pub duration_ns: Nanos,
    /// Length of the discarded warm-up.
    pub warmup_ns: Nanos,
    /// Deltas at or above this are stalls.
    pub threshold_ns: Nanos,
    /// What reading the clock and storing a stall took before a spinning probe measured; `None` for the others,
    /// and for runs of version 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_costs: Option<ClockCosts>,
    /// Length of a reporting interval.
    pub interval_ns: Nanos,
    /// SCHED_FIFO priority; `None` for the fair class.
    pub fifo_priority: Option<u32>,
    /// How the wake-up probe was set; `None` for the others, and for runs of version 0.1.
    #[serde(default)]
    pub wakeup: Option<crate::WakeupConditions>,
    /// Which classes of kernel events were asked for, where any were.
    #[serde(default)]
    pub event_grain: crate::EventGrain,
}

impl ProbeSettings {
    /// What kind of recording it was; `None` for one of a newer version.
    #[must_use]
    pub fn kind(&self) -> Option<crate::ProbeKind> {
        crate::ProbeKind::from_word(&self.kind)
    }
}

/// What a spinning probe's own doing takes, on the worst of its CPUs: nothing as short as that can be told apart
/// from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockCosts {
    /// All but one in a thousand reads of the clock took no longer, while others disturbed it least.
    pub read_tail_ns: Nanos,
    /// All but one in a hundred times, storing a stall took no longer, likewise.
    pub store_ns: Nanos,
    /// Whether the threshold follows from these, rather than having been asked for.
    pub decide_threshold: bool,
}

/// The machine that was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Host name.
    pub hostname: String,
    /// `uname -r`.
    pub kernel_release: String,
    /// `uname -v`.
    pub kernel_version: String,
    /// Machine architecture.
    pub arch: String,
    /// CPU model name.
    pub cpu_model: String,
    /// Kernel command line.
    pub cmdline: String,
    /// Online CPUs.
    pub online: CpuSet,
    /// Isolated CPUs.
    pub isolated: CpuSet,
    /// CPUs whose tick can stop while busy.
    pub nohz_full: CpuSet,
    /// The hypervisor's signature when this is a virtual machine.
    pub hypervisor: Option<String>,
}

/// Settings of the machine at the start, by path: value as read. Runs of [`crate::RUN_SCHEMA_VERSION`] 2 have
/// them by knob in [`crate::MachineState`].
pub type MachineAudit = BTreeMap<String, String>;

/// What the measuring itself cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SelfNoise {
    /// CPUs that our helper threads were confined to; empty when none was free.
    pub helper_cpus: CpuSet,
    /// CPU time of the helper threads, nanoseconds.
    pub helper_cpu_ns: Nanos,
    /// Peak resident memory of the whole process, bytes.
    pub peak_rss_bytes: u64,
    /// Entry cost granted to a culprit: the smallest lead seen.
    pub entry_cost_ns: Nanos,
    /// Exit cost granted to a culprit: the smallest trail seen.
    pub exit_cost_ns: Nanos,
    /// How many stalls the entry cost was measured on.
    pub cost_samples: u64,
    /// What recording the kernel's events cost; `None` without them, and of older runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<crate::EventPrice>,
}

/// How much one of the kernel's counters rose on one CPU during the measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CounterTotal {
    /// The CPU.
    pub cpu: crate::CpuId,
    /// File and name: `interrupt LOC (Local timer interrupts)`, `softirq NET_RX`.
    pub name: String,
    /// By how much.
    pub total: u64,
    /// Pearson's correlation, over the reporting intervals, of its rise with the time stolen from the
    /// CPU; `None` when there are too few intervals or either never varied.
    pub correlation: Option<f64>,
}

/// The cost of one class of edge, as learnt before the measurement: with it attribution can be done again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeCostRow {
    /// Class of edge: `lead_interrupt`, `trail_switch`, ...
    pub edge: String,
    /// The smallest seen.
    pub smallest_ticks: Ticks,
    /// How many were seen.
    pub samples: u64,
}

/// A work item that slept when a CPU's measurement began: with it attribution can be done again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SleepingWork {
    /// The CPU that it sleeps on.
    pub cpu: CpuId,
    /// Its worker.
    pub tid: i32,
    /// When the worker left the CPU.
    pub left: Ticks,
    /// When the item was begun.
    pub begun: Ticks,
    /// The item's address.
    pub work: u64,
    /// The item's function.
    pub function: KernelAddr,
}

/// The proof of the correlation: kernel events of the measured CPUs, and how many lie inside stalls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsInGaps {
    /// Kernel events recorded on measured CPUs during the measurement.
    pub events: u64,
    /// Those inside a recorded gap.
    pub inside: u64,
    /// Those outside of all gaps that belong to what took the kernel less than the threshold: no gap need hold them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub too_short: u64,
    /// Control: events compared after a random shift in time, each its own. Of very many, one in so many.
    pub control_events: u64,
    /// Control: those inside a recorded gap all the same.
    pub control_inside: u64,
}

impl EventsInGaps {
    /// Those that must lie in a gap.
    #[must_use]
    pub fn due(&self) -> u64 {
        self.events.saturating_sub(self.too_short)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// What the run keeps of the raw trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTrace {
    /// Bytes kept.
    pub bytes: u64,
    /// Whether all of the trace is there; otherwise only what lies around the worst stalls.
    pub complete: bool,
    /// The limit that applied, bytes.
    pub limit_bytes: u64,
}
/// Everything about a run but its rows and the machine that it was made on: `details.json`. Its head is
/// [`crate::RunHead`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunManifest {
    /// [`crate::RUN_SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The tool's version.
    pub tool_version: String,
    /// Unique short id.
    pub id: String,
    /// Process id of the recorder, as the kernel's records name it; `None` of older runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorder_pid: Option<i32>,
    /// The user's name for the configuration.
    pub label: String,
    /// The command line, as given.
    pub command_line: Vec<String>,
    /// The machine.
    pub host: HostFacts,
    /// Which clock was read.
    pub clock: ClockKind,
    /// Its rate.
    pub rate: TickRate,
    /// Clocks at the start of the measurement.
    pub clock_start: ClockReading,
    /// Clocks at its end.
    pub clock_end: ClockReading,
    /// Settings of the probe.
    pub probe: ProbeSettings,
    /// Results, one a CPU.
    pub results: Vec<ProbeResult>,
    /// Lateness in full, one a CPU, where the probe slept and woke.
    #[serde(default)]
    pub wakeups: Vec<crate::WakeupResult>,
    /// What became of the time of the threads that were followed.
    #[serde(default)]
    pub threads: Vec<crate::ThreadAccount>,
    /// What the pipeline measured, where it was the probe; `results` is empty then.
    #[serde(default)]
    pub pipeline: Option<crate::PipelineResult>,
    /// What became of the time of CPUs that were watched without a probe.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passive: Vec<crate::PassiveCpu>,
    /// Whether stalls were attributed by kernel events (else only counted).
    pub attributed: bool,
    /// Sources of evidence, with their losses.
    pub sources: Vec<SourceReport>,
    /// Counters of the kernel that rose on measured CPUs during the run; correlation only.
    pub counters: Vec<CounterTotal>,
    /// Costs of edges at the start of the measurement.
    #[serde(default)]
    pub edge_costs: Vec<EdgeCostRow>,
    /// Work items that slept on the measured CPUs when their measurement began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sleeping_works: Vec<SleepingWork>,
    /// The proof of the correlation.
    pub events_in_gaps: EventsInGaps,
    /// Records of senders that were dropped, for there were too many at once: who sent what they were about is
    /// not known, though the kernel recorded it.
    #[serde(default)]
    pub senders_dropped: u64,
    /// Settings of the machine, in runs of schema version 1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub audit: MachineAudit,
    /// What the measuring itself cost.
    pub self_noise: SelfNoise,
    /// What the run keeps of the raw trace.
    pub trace: StoredTrace,
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// Warnings.
    pub warnings: Vec<Warning>,
}

impl RunManifest {
    /// First and last moment of the measurement on the measuring clock; `None` when nothing was measured.
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
        // Who waited in vain for threads has looked for them all that time.
        met.or_else(|| {
            (self.probe.kind() == Some(crate::ProbeKind::Attach))
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

    /// From the first clock read of any CPU to the last of any.
    #[must_use]
    pub fn duration(&self) -> Nanos {
        let (first, last) = self.span().unwrap_or_default();
        self.rate.nanos(last.since(first))
    }

    /// The time in which stalls were looked for, summed over CPUs where a probe had each for itself.
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

    /// The CPU that was measured only to compare the others with.
    #[must_use]
    pub fn idle_control(&self) -> Option<crate::CpuId> {
        self.probe
            .wakeup
            .as_ref()
            .and_then(|wakeup| wakeup.idle_control)
    }

    /// Maps an instant of the measuring clock to nanoseconds since the epoch, from the pair of clock
    /// readings at the start: a step of the wall clock during the run does not bend the result.
    #[must_use]
    pub fn realtime_ns(&self, at: Ticks) -> u64 {
        self.clock_start.realtime_of(at, self.rate)
    }
}

impl ClockReading {
    /// `at` in nanoseconds since the epoch, seen from this reading.
    #[must_use]
    pub fn realtime_of(&self, at: Ticks, rate: TickRate) -> u64 {
        if at >= self.ticks {
            self.realtime_ns
                .saturating_add(rate.nanos(at.since(self.ticks)).0)
        } else {
            self.realtime_ns
                .saturating_sub(rate.nanos(self.ticks.since(at)).0)
        }
    }
}
