//! The summary of a run: the contract of every JSON report. New versions only add fields.

use crate::cpu_summary::{CpuSummary, TotalSummary};
use crate::culprit_row::CulpritRow;
use crate::owners::OwnerRow;
use crate::{FineNanos, PipelineSummary};
use jitterscope_model::{
    AddedRecords, AnyVersion, AskedEventRecords, ClockCosts, ClockKind, CounterTotal, CpuId,
    CpuSet, CpusBecause, Doubt, EventGrain, Imported, MachineState, Nanos, Part, PassiveCpu,
    RateSource, SavedMoment, SourceLoss, SourceProblem, SourceReport, SourceStatus, StallId,
    ThreadAccount, Warning,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunSummary {
    /// The version of this contract: that of the run directory.
    pub schema_version: u32,
    pub run: RunHeader,
    /// The verdict of `record --profile`; absent without a profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<crate::ProfileVerdict>,
    /// The observed maximum and its exposure, without an idle control; null if nothing was measured.
    pub worst_case: Option<crate::WorstCase>,
    /// The measurements of the probe.
    pub probe: ProbeSummary,
    /// The lateness of wake-ups; null for probes that do not sleep.
    pub wakeup: Option<crate::WakeupSummary>,
    /// The culprits; null if stalls were only counted.
    pub attribution: Option<AttributionSummary>,
    /// The longest stalls, longest first. Of stalls that began together only the longest is listed, with the others
    /// inside it. Without an idle control.
    pub worst: Vec<WorstStall>,
    /// The accounts of followed threads; absent if there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadAccount>,
    /// The accounts of CPUs watched without a probe; absent if there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passive: Vec<PassiveCpu>,
    /// Stalls that began together on several CPUs; null if one CPU was measured.
    pub simultaneous: Option<Simultaneous>,
    /// Stolen time over the run.
    pub history: History,
    /// The measurements of the pipeline; null for the other probes.
    pub pipeline: Option<PipelineSummary>,
    /// Periods of the stalls; null if there was no search: in wake-up runs, deadlines are periodic themselves.
    pub periods: Option<crate::periods::PeriodSummary>,
    /// The marks of the application's logs, with the stalls in them; absent without logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marks: Option<crate::marks::MarksSummary>,
    /// The kernel's counters that rose on measured CPUs; correlation only.
    pub counters: Vec<CounterTotal>,
    /// The sources of evidence, and what they could not see.
    pub sources: Vec<SourceSummary>,
    /// The basis of the verdicts.
    pub trust: Trust,
    /// What the reader must know.
    pub warnings: Vec<SummaryWarning>,
    /// The machine of the recording; null if unknown.
    pub machine: Option<Box<MachineState>>,
}

impl RunSummary {
    /// Why no culprit is named; empty if culprits are named, even for a part of the time. Slow messages without a row
    /// do not withhold the others: if enough have rows, those are shown with their number.
    #[must_use]
    pub fn withheld(&self) -> &[Doubt] {
        let doubts = &self.trust.doubts;
        let shown = self.pipeline.iter().any(|pipeline| {
            let mut consumers = pipeline.consumers.iter();
            consumers.any(|consumer| pipeline.held_up(consumer.role).is_some())
        });
        let hides = |doubt: &Doubt| {
            doubt.is_of_all() && !(shown && matches!(doubt, Doubt::MessagesUnrecorded { .. }))
        };
        if doubts.iter().any(hides) {
            doubts
        } else {
            &[]
        }
    }
}

/// A limit on what the run can show.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SummaryWarning {
    #[serde(flatten)]
    pub warning: Warning,
    /// What it means, in sentences.
    // `view` fills it in, except for warnings that have their own.
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

/// The run's identity and machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct RunHeader {
    pub id: String,
    /// The user's name for the configuration.
    pub label: String,
    /// Its folder; empty if it is not stored.
    pub path: String,
    /// Start of the measurement, nanoseconds since the epoch.
    pub started_realtime_ns: u64,
    /// From the first clock read to the last.
    pub duration_ns: Nanos,
    pub planned_ns: Nanos,
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// Whether its recorder was killed: what only its memory held is null or absent, and the totals cover only what it
    /// had written.
    pub killed: bool,
    /// The moment that the rows surround, if `watch` saved the run; null otherwise. What only the recorder's memory
    /// holds is null or absent.
    pub moment: Option<SavedMoment>,
    /// The file that the records come from, if another tool recorded them; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
    /// Another tool's records, if the run's own stalls are attributed by them; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<AddedRecords>,
    /// Events that the user asked for, with the number of their records; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked_events: Vec<AskedEventRecords>,
    /// Version of the recorder.
    pub tool_version: String,
    pub hostname: String,
    /// `uname -r`.
    pub kernel_release: String,
    /// CPU model name.
    pub cpu_model: String,
    /// The hypervisor's signature on a virtual machine.
    pub hypervisor: Option<String>,
}

/// The measurements of the probe.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProbeSummary {
    /// `spin`, `wakeup`, `pipeline`, `attach` or `passive`.
    pub kind: String,
    /// Deltas at or above this are stalls.
    pub threshold_ns: Nanos,
    /// The cost of a spinning probe's own work, and whether the threshold follows from it; null for the other probes.
    pub clock_costs: Option<ClockCosts>,
    /// Rate of the measuring clock.
    pub tsc_hz: u64,
    pub clock: ClockKind,
    /// SCHED_FIFO priority; null for the fair class.
    pub fifo_priority: Option<u32>,
    /// The recorded classes of kernel events; null if none were recorded.
    pub event_grain: Option<EventGrain>,
    /// The reason for these CPUs, if the user did not name them.
    pub cpus_chosen_because: Option<AnyVersion<CpusBecause>>,
    /// One entry for each CPU, in order.
    pub cpus: Vec<CpuSummary>,
    /// All CPUs together except an idle control.
    pub total: TotalSummary,
}

/// The culprits on all CPUs except an idle control. To the nanosecond, the totals of `culprits` and of `unexplained`
/// sum to `stalled_ns`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct AttributionSummary {
    /// Whether the evidence passes its own proof. If not, `trust.doubts` says why, and no culprit is a basis for
    /// action.
    pub proven: bool,
    /// Share of the stalled time that recorded kernel activity explains.
    pub explained_fraction: f64,
    /// Stalls with a record.
    pub stalls: u64,
    /// The sum of their lengths, each rounded down to a nanosecond.
    pub stalled_ns: Nanos,
    /// The share of kernel events on measured CPUs inside a stall, without those that were too short; null without
    /// events.
    pub events_in_gaps_fraction: Option<f64>,
    /// The same after a random shift of each event: the share expected by chance.
    pub events_in_gaps_control: Option<f64>,
    /// The number of kernel events behind the two.
    pub events: u64,
    /// Further kernel events that lie in no stall and need not: what they belong to took less than the threshold.
    pub events_too_short: u64,
    /// The culprits that explain the stalled time, by total.
    pub culprits: Vec<CulpritRow>,
    /// Whose threads took the time: by control group, by total. Kernel threads belong to none.
    pub owners: Vec<OwnerRow>,
    pub unexplained: Unexplained,
}

/// Stalled time that no record explains.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Unexplained {
    pub total_ns: Nanos,
    /// The share of all stalled time.
    pub share: f64,
    /// The total of each verdict, by `kind: name`.
    #[serde(rename = "by_class_ns")]
    pub by_class: BTreeMap<String, Nanos>,
    /// The same as rows, by total.
    pub classes: Vec<CulpritRow>,
}

/// A stall and its parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorstStall {
    /// From 1; null for a stall that the user asked for.
    pub rank: Option<usize>,
    /// Its number within the run.
    pub stall: StallId,
    pub cpu: CpuId,
    pub victim: String,
    /// Start, nanoseconds since the epoch.
    pub start_realtime_ns: u64,
    /// Its start, since the start of the measurement.
    pub start_offset_ns: Nanos,
    pub duration_ns: Nanos,
    /// Stalls of other CPUs that began with it and are at least a tenth as long, itself included; null without any.
    pub together: Option<Together>,
    /// Its parts, largest first; empty without attribution.
    pub parts: Vec<Part>,
}

/// Stalls that began together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Together {
    pub cpus: CpuSet,
    /// One entry for each CPU, in order.
    pub stalls: Vec<TogetherStall>,
}

/// One of stalls that began together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TogetherStall {
    pub cpu: CpuId,
    /// Its number within the run.
    pub stall: StallId,
    pub duration_ns: Nanos,
}

/// Stalls that began together on several CPUs, as with firmware and a paused virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Simultaneous {
    /// The longest time between the first start of a group and another.
    pub window_ns: Nanos,
    /// Groups of stalls on at least two CPUs.
    pub groups: u64,
    /// The number of groups expected by chance, from the rates of the CPUs.
    pub groups_by_chance: f64,
    pub stalls: u64,
    /// The number of groups with every measured CPU.
    pub on_all_cpus: u64,
    /// The groups with the longest stalls, longest first.
    pub worst: Vec<SimultaneousGroup>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimultaneousGroup {
    /// Start of the first of its stalls, nanoseconds since the epoch.
    pub start_realtime_ns: u64,
    pub cpus: CpuSet,
    /// The longest of its stalls.
    pub longest_ns: Nanos,
}

/// Stolen time over the run in equal steps: for all CPUs together except an idle control, and for each CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct History {
    /// The length of a step.
    pub step_ns: Nanos,
    /// The sum of the stalls in each step.
    pub stolen_ns: Vec<Nanos>,
    /// The longest stall in each step.
    pub max_ns: Vec<Nanos>,
    /// One entry for each CPU, in order; including the idle control.
    pub cpus: Vec<CpuHistory>,
}

/// Stolen time of one CPU over the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CpuHistory {
    pub cpu: CpuId,
    /// Sum of its stalls in each step.
    pub stolen_ns: Vec<Nanos>,
    /// Its longest stall in each.
    pub max_ns: Vec<Nanos>,
}

/// A source of evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SourceSummary {
    /// Its name, as `--require` takes it.
    pub name: String,
    /// How much of it was available.
    pub status: SourceStatus,
    pub problems: Vec<SourceProblem>,
    /// What cannot be seen without it.
    pub losses: Vec<SourceLoss>,
    /// Lost records.
    pub lost: u64,
    // Empty until `view` fills them in.
    #[serde(flatten)]
    pub words: SourceWords,
}

/// The words about a source: each is a part of a sentence, or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SourceWords {
    /// Why it is incomplete.
    pub reason: String,
    /// What cannot be seen without it.
    pub loses: String,
    /// The least intrusive fix.
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

/// The basis of the verdicts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Trust {
    /// The highest floor of any CPU: nothing shorter is visible there.
    pub floor_ns: Option<FineNanos>,
    /// The floor in ticks.
    pub floor_ticks: Option<u64>,
    /// The lowest rate of any CPU; null if the recorder was killed.
    pub samples_per_sec: Option<f64>,
    /// The lowest coverage of any CPU; null likewise.
    pub coverage: Option<f64>,
    /// The bound of the relative error of the clock's rate, parts per billion.
    pub rate_error_ppb: u64,
    /// The source of the rate.
    pub rate_source: RateSource,
    /// Stalls without a record.
    pub dropped_records: u64,
    /// Contradictory rows: parts longer or shorter than their stall, or without a stall.
    pub inconsistent_rows: u64,
    /// Why verdicts do not hold, all or some; empty if they hold.
    pub doubts: Vec<Doubt>,
    /// Lost kernel events and other records, over all sources; null if the recorder was killed.
    pub lost_records: Option<u64>,
    /// Dropped records of senders (wake-ups, calls, queued work), because there were too many at once.
    pub senders_dropped: u64,
    /// Page faults of the probes; null if the recorder was killed.
    pub page_faults: Option<u64>,
    /// Involuntary context switches of the probes; null likewise.
    pub involuntary_switches: Option<u64>,
    /// The CPUs of the recorder's helper threads.
    pub helper_cpus: CpuSet,
    /// Whether the helper CPUs were measured, or could not be kept apart from the measured ones.
    pub helpers_on_measured: bool,
    /// CPU time of the helpers; null if the recorder was killed.
    pub helper_cpu_ns: Option<Nanos>,
    /// The cost of recording kernel events; null without them, and in older runs that did not measure it.
    pub price: Option<crate::Price>,
    /// Peak memory of the recorder; null if it was killed.
    pub peak_rss_bytes: Option<u64>,
    /// The time before an event that is attributed to its culprit.
    pub entry_cost_ns: Nanos,
    /// The time after an event that is attributed to its culprit.
    pub exit_cost_ns: Nanos,
    /// The number of stalls behind those two costs.
    pub cost_samples: u64,
    /// Bytes of raw trace kept.
    pub raw_trace_bytes: u64,
    /// Whether the raw trace is complete.
    pub raw_trace_complete: bool,
}

impl Trust {
    /// Whether the verdicts on culprits hold, except in stalls that state why they have none.
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.doubts.iter().any(Doubt::is_of_all)
    }
}
