//! What a run says: the contract of every JSON report. Fields are only ever added.

use crate::cpu_summary::{CpuSummary, TotalSummary};
use crate::culprit_row::CulpritRow;
use crate::{FineNanos, PipelineSummary};
use jitterscope_model::{
    AnyVersion, ClockCosts, ClockKind, CounterTotal, CpuId, CpuSet, CpusBecause, Doubt, EventGrain,
    MachineState, Nanos, Part, PassiveCpu, RateSource, SourceLoss, SourceProblem, SourceReport,
    SourceStatus, StallId, ThreadAccount, Warning,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSummary {
    /// Version of this contract: that of the run directory.
    pub schema_version: u32,
    /// Which run.
    pub run: RunHeader,
    /// What the probe measured.
    pub probe: ProbeSummary,
    /// How late sleepers woke; null for probes that do not sleep.
    pub wakeup: Option<crate::WakeupSummary>,
    /// Who was to blame; null when stalls were only counted.
    pub attribution: Option<AttributionSummary>,
    /// The longest stalls, longest first; of those that began together only the longest, with the others
    /// beside it. An idle control's are left out.
    pub worst: Vec<WorstStall>,
    /// What became of the time of the threads that were followed; absent when none was.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadAccount>,
    /// What became of the time of CPUs that were watched without a probe; absent when none was.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passive: Vec<PassiveCpu>,
    /// Stalls that began together on several CPUs; null when one CPU was measured.
    pub simultaneous: Option<Simultaneous>,
    /// Stolen time over the run.
    pub history: History,
    /// What the pipeline measured; null for the other probes.
    pub pipeline: Option<PipelineSummary>,
    /// Periods of the stalls; null when none were looked for: in wake-up runs, whose deadlines are periodic
    /// themselves.
    pub periods: Option<crate::periods::PeriodSummary>,
    /// The kernel's counters that rose on measured CPUs; correlation only.
    pub counters: Vec<CounterTotal>,
    /// What could be seen and what could not.
    pub sources: Vec<SourceSummary>,
    /// What the verdicts rest on.
    pub trust: Trust,
    /// What the reader must know.
    pub warnings: Vec<SummaryWarning>,
    /// The machine that it was made on; null when it is not known, as for runs of schema version 1.
    pub machine: Option<Box<MachineState>>,
}

/// What limits what the run can say.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SummaryWarning {
    /// As data.
    #[serde(flatten)]
    pub warning: Warning,
    /// In words; empty until the view of it is made.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
}

impl From<Warning> for SummaryWarning {
    fn from(warning: Warning) -> SummaryWarning {
        SummaryWarning {
            warning,
            text: String::new(),
        }
    }
}

/// Which run, and where it was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunHeader {
    /// Its short id.
    pub id: String,
    /// The user's name for the configuration.
    pub label: String,
    /// Its folder; empty when it is not stored.
    pub path: String,
    /// Start of the measurement, nanoseconds since the epoch.
    pub started_realtime_ns: u64,
    /// From the first clock read to the last.
    pub duration_ns: Nanos,
    /// How long it should have been.
    pub planned_ns: Nanos,
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// Version of the recorder.
    pub tool_version: String,
    /// Host name.
    pub hostname: String,
    /// `uname -r`.
    pub kernel_release: String,
    /// CPU model name.
    pub cpu_model: String,
    /// The hypervisor's signature when it was a virtual machine.
    pub hypervisor: Option<String>,
}

/// What the probe measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProbeSummary {
    /// `spin`, `wakeup`, `pipeline`, `attach` or `passive`.
    pub kind: String,
    /// Deltas at or above this are stalls.
    pub threshold_ns: Nanos,
    /// What a spinning probe's own doing takes, and whether the threshold follows from it; null for the others.
    pub clock_costs: Option<ClockCosts>,
    /// Rate of the measuring clock.
    pub tsc_hz: u64,
    /// Which clock that is.
    pub clock: ClockKind,
    /// SCHED_FIFO priority; null for the fair class.
    pub fifo_priority: Option<u32>,
    /// Which classes of kernel events were recorded; null where none were.
    pub event_grain: Option<EventGrain>,
    /// Why these CPUs, when the user named none.
    pub cpus_chosen_because: Option<AnyVersion<CpusBecause>>,
    /// One a CPU, in order.
    pub cpus: Vec<CpuSummary>,
    /// All CPUs together, but for an idle control.
    pub total: TotalSummary,
}

/// Who was to blame, on all CPUs but an idle control. To the nanosecond, the totals of `culprits` and of `unexplained` sum to `stalled_ns`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AttributionSummary {
    /// Whether the evidence passes its own proof; where not, `trust.doubts` says why, and no culprit is to be
    /// acted upon.
    pub proven: bool,
    /// Share of the stalled time that recorded kernel activity explains.
    pub explained_fraction: f64,
    /// Stalls with a record.
    pub stalls: u64,
    /// Their lengths, each rounded down to a nanosecond, summed.
    pub stalled_ns: Nanos,
    /// Share of the kernel events on measured CPUs that fell inside a stall, but for those that were too short; null
    /// without events.
    pub events_in_gaps_fraction: Option<f64>,
    /// The same after a random shift of each event: what chance would give.
    pub events_in_gaps_control: Option<f64>,
    /// Kernel events that the two rest on.
    pub events: u64,
    /// Kernel events beside those that lie in no stall and need not: what they belong to took less than the threshold.
    pub events_too_short: u64,
    /// Who explains the stalled time, by total.
    pub culprits: Vec<CulpritRow>,
    /// The rest.
    pub unexplained: Unexplained,
}

/// Stalled time that nothing recorded explains.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Unexplained {
    /// All of it.
    pub total_ns: Nanos,
    /// Of all stalled time.
    pub share: f64,
    /// By `kind: name` of the verdict.
    #[serde(rename = "by_class_ns")]
    pub by_class: BTreeMap<String, Nanos>,
    /// The same as rows, by total.
    pub classes: Vec<CulpritRow>,
}

/// A stall and its parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorstStall {
    /// From 1; null for a stall that was asked for by itself.
    pub rank: Option<usize>,
    /// Its number within the run.
    pub stall: StallId,
    /// Where.
    pub cpu: CpuId,
    /// The thread that was stalled.
    pub victim: String,
    /// Start, nanoseconds since the epoch.
    pub start_realtime_ns: u64,
    /// Start, since that of the measurement.
    pub start_offset_ns: Nanos,
    /// Length.
    pub duration_ns: Nanos,
    /// Stalls of other CPUs that began with it and are a tenth as long or longer, itself included; null
    /// when there are none.
    pub together: Option<Together>,
    /// Its parts, largest first; empty when there is no attribution.
    pub parts: Vec<Part>,
}

/// Stalls that began together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Together {
    /// Where.
    pub cpus: CpuSet,
    /// One a CPU, in order of the CPUs.
    pub stalls: Vec<TogetherStall>,
}

/// One of stalls that began together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TogetherStall {
    /// Where.
    pub cpu: CpuId,
    /// Its number within the run.
    pub stall: StallId,
    /// Length.
    pub duration_ns: Nanos,
}

/// Stalls that began together on several CPUs, as those of firmware and of a paused virtual machine do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Simultaneous {
    /// They began within this of the first of them.
    pub window_ns: Nanos,
    /// Groups of stalls on at least two CPUs.
    pub groups: u64,
    /// Groups to be expected by chance, from the rates of the CPUs.
    pub groups_by_chance: f64,
    /// Stalls in groups.
    pub stalls: u64,
    /// Groups that took in every measured CPU.
    pub on_all_cpus: u64,
    /// The groups with the longest stalls, longest first.
    pub worst: Vec<SimultaneousGroup>,
}

/// One group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimultaneousGroup {
    /// Start of the first of its stalls, nanoseconds since the epoch.
    pub start_realtime_ns: u64,
    /// Where.
    pub cpus: CpuSet,
    /// The longest of its stalls.
    pub longest_ns: Nanos,
}

/// Stolen time over the run in equal steps: all CPUs together but for an idle control, and each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct History {
    /// Length of a step.
    pub step_ns: Nanos,
    /// Sum of the stalls in each.
    pub stolen_ns: Vec<Nanos>,
    /// The longest stall in each.
    pub max_ns: Vec<Nanos>,
    /// One a CPU, in order; the idle control too.
    pub cpus: Vec<CpuHistory>,
}

/// Stolen time of one CPU over the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CpuHistory {
    /// Which.
    pub cpu: CpuId,
    /// Sum of its stalls in each step.
    pub stolen_ns: Vec<Nanos>,
    /// Its longest stall in each.
    pub max_ns: Vec<Nanos>,
}

/// A source of evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceSummary {
    /// Its name, as `--require` takes it.
    pub name: String,
    /// What there was of it.
    pub status: SourceStatus,
    /// Why.
    pub problems: Vec<SourceProblem>,
    /// What cannot be seen for it.
    pub losses: Vec<SourceLoss>,
    /// Records lost.
    pub lost: u64,
    /// The same in words; empty until they are made, where a person reads them.
    #[serde(flatten)]
    pub words: SourceWords,
}

/// What is said of a source in words: each a part of a sentence, or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SourceWords {
    /// Why it is not all there.
    pub reason: String,
    /// What cannot be seen for it.
    pub loses: String,
    /// The narrowest way to get it.
    pub fix: String,
}

impl From<&SourceReport> for SourceSummary {
    fn from(source: &SourceReport) -> SourceSummary {
        SourceSummary {
            name: source.name.clone(),
            status: source.status.clone(),
            problems: source.problems.clone(),
            losses: source.losses.clone(),
            lost: source.lost,
            words: SourceWords::default(),
        }
    }
}

/// What the verdicts rest on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trust {
    /// The highest floor of any CPU: nothing shorter can be seen there.
    pub floor_ns: Option<FineNanos>,
    /// That, in ticks.
    pub floor_ticks: Option<u64>,
    /// The lowest rate of any CPU.
    pub samples_per_sec: f64,
    /// The lowest coverage of any CPU.
    pub coverage: f64,
    /// Bound of the relative error of the clock's rate, parts per billion.
    pub rate_error_ppb: u64,
    /// Where the rate was learnt.
    pub rate_source: RateSource,
    /// Stalls without a record.
    pub dropped_records: u64,
    /// Rows that contradict one another: parts longer or shorter than their stall, or of no stall.
    pub inconsistent_rows: u64,
    /// What the verdicts fail by; empty where they hold.
    pub doubts: Vec<Doubt>,
    /// Kernel events and other records lost, over all sources.
    pub lost_records: u64,
    /// Records of who woke, called or queued that were dropped, for there were too many at once.
    pub senders_dropped: u64,
    /// Page faults of the probes.
    pub page_faults: u64,
    /// Involuntary context switches of the probes.
    pub involuntary_switches: u64,
    /// CPUs that our helper threads were confined to.
    pub helper_cpus: CpuSet,
    /// Whether those were measured, or could not be kept apart from the measured ones.
    pub helpers_on_measured: bool,
    /// CPU time of the helpers.
    pub helper_cpu_ns: Nanos,
    /// What recording the kernel's events cost; null without them, and of runs of before it was measured.
    pub price: Option<crate::Price>,
    /// Peak memory of the recorder.
    pub peak_rss_bytes: u64,
    /// Time before an event that is granted to its culprit.
    pub entry_cost_ns: Nanos,
    /// Time after an event that is granted to its culprit.
    pub exit_cost_ns: Nanos,
    /// Stalls that those two were measured on.
    pub cost_samples: u64,
    /// Bytes of raw trace kept.
    pub raw_trace_bytes: u64,
    /// Whether that is all of it.
    pub raw_trace_complete: bool,
}
