use crate::{
    AnyVersion, CpuId, CpuSet, EndedEarly, JournalEnd, JournalFault, Misfit, NamedOwner, Nanos,
    PipelineRole, QuotaLimit, SourceProblem, TscFlaw,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A limit on what a run can show, as data. The sentences are made for display.
///
/// In JSON each has its stable, hyphenated `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum Warning {
    /// Stalls are counted, not attributed.
    NoKernelEvents(NoKernelEvents),
    /// Every usable CPU is in use, so our own threads ran on the same ones.
    NoFreeCpu {
        cpus: CpuSet,
        taken: CpuUse,
    },
    /// No thread was found to belong on some of the CPUs.
    NoOwner {
        cpus: CpuSet,
        /// Length of the search before the measurement.
        look_ns: Nanos,
    },
    /// No thread was found during the whole recording.
    OwnerNotMet {
        /// The threads that the user named; null if the user named none.
        named: Option<AnyVersion<NamedOwner>>,
        /// Whether CPUs were watched; then no time counts as stolen.
        watching: bool,
    },
    /// The followed command failed.
    CommandFailed {
        /// Its exit status, as the system describes it.
        status: String,
    },
    /// Some threads were not followed.
    TooManyThreads {
        /// The number of these threads.
        refused: u64,
        /// Maximum of followed threads.
        most: u64,
    },
    /// Threads of the name were found late, or only at their end.
    NotFollowed {
        /// Threads that were found only after they had run under the name.
        late: u64,
        /// Threads that were only seen to end.
        missed: u64,
    },
    /// Some threads were renamed so often that their renames are no longer recorded.
    RenamedOften {
        threads: u64,
    },
    /// The kernel does not record some switches.
    UnrecordedSwitches {
        /// Switches without a record.
        count: u64,
        cpus: CpuSet,
    },
    /// There were more slices than can be kept in order.
    Folded {
        /// Stalled time for which only sums were kept.
        time_ns: Nanos,
    },
    /// A control group used up its CPU quota.
    CpuQuota {
        /// Its path below the controller.
        cgroup: String,
        /// Its limit, if it could be read.
        limit: Option<QuotaLimit>,
        /// Periods in which it was used up.
        times: u64,
        /// Throttled time of its threads, summed over the CPUs.
        time_ns: Nanos,
    },
    /// A CPU's frequency changed during the measurement.
    FrequencyChanged {
        cpu: CpuId,
        /// The number of changes.
        times: u64,
        /// The lowest frequency that was set.
        lowest_khz: u32,
        /// The highest frequency that was set.
        highest_khz: u32,
    },
    CpuOffline {
        cpus: CpuSet,
    },
    /// Our own threads run on the idle control.
    IdleControlShared {
        cpu: CpuId,
    },
    /// Our own threads run on the other hardware thread of a measured core.
    SmtSibling {
        cpu: CpuId,
        /// The CPUs that our own threads could run on.
        siblings: CpuSet,
    },
    /// Real-time throttling will stall the probe itself.
    RtThrottling {
        /// `kernel.sched_rt_runtime_us`.
        runtime_us: i64,
        /// `kernel.sched_rt_period_us`.
        period_us: i64,
    },
    /// The TSC is not used.
    ClockFallback {
        reason: AnyVersion<TscFlaw>,
    },
    /// The TSC is used, although the CPU does not guarantee a required property.
    ClockDoubt {
        /// The missing property.
        reason: AnyVersion<TscFlaw>,
    },
    /// The probe's own bookkeeping takes as long as its stalls.
    OwnBookkeeping {
        /// The CPU of the probe.
        cpu: CpuId,
        /// Stalls that are its own bookkeeping.
        count: u64,
        /// The shortest gap that counts as a stall.
        threshold_ns: Nanos,
        /// The maximum time for storing a stall.
        store_ns: Nanos,
    },
    /// Some stalls have no record.
    DroppedRecords {
        /// The thread that measured them.
        thread: MeasuringThread,
        dropped: u64,
    },
    /// The ring buffer overran.
    TraceLost {
        lost: u64,
    },
    /// Another process wrote to the controls of the trace.
    TraceDisturbed {
        /// How often that was noticed.
        times: u64,
        /// Start of the distrusted time, from the beginning of the measurement.
        first_ns: Nanos,
        time_ns: Nanos,
        /// The control files, as `INSTANCE/FILE`.
        files: Vec<String>,
        /// Whether the controls were finally restored.
        repaired: bool,
    },
    /// The kernel counted more of an event than was recorded, although no record was lost and no write to the trace's
    /// controls was seen.
    EventsMissing {
        event: String,
        counted: u64,
        recorded: u64,
    },
    /// Kernel events were lost, and the thread that reads them had waited for rows to be written.
    WriterBehind {
        waited_ns: Nanos,
    },
    /// A CPU's measurement ended early.
    CpuEndedEarly {
        cpu: CpuId,
        why: AnyVersion<EndedEarly>,
    },
    /// A measuring thread had page faults during the measurement.
    OwnPageFaults {
        thread: MeasuringThread,
        faults: u64,
    },
    /// Tracing instances of an earlier, killed recorder were removed, or are still in use.
    LeftoversRemoved {
        /// The number of removed instances.
        count: u64,
        /// The number of instances in use by another process.
        #[serde(default)]
        kept: u64,
    },
    /// The raw trace was not kept: the disk was filling up.
    TraceDiscarded {
        /// Whether the full disk was only found when the run was closed.
        at_the_end: bool,
    },
    /// The disk filled up, so the recording ended early, while it could still be closed.
    DiskFull {
        /// Stalls at the end that are counted but not stored.
        unstored: u64,
    },
    /// An output other than the run lost rows.
    OutputLost {
        /// The output, as the user named it.
        output: String,
        /// The number of delivered rows.
        delivered: u64,
        /// The number of lost rows.
        lost: u64,
        why: String,
    },
    /// The user ended the recording early.
    Interrupted,
    /// The recorder was killed, and the next start finished the run.
    Killed {
        /// What only the recorder's memory held.
        missing: Vec<MissingFigure>,
    },
    /// `watch` saved the run while its recorder went on.
    SavedPart {
        /// What only the recorder's memory holds.
        missing: Vec<MissingFigure>,
    },
    /// The pipeline's placement was refused, but forced.
    ForcedPlacement {
        misfit: AnyVersion<Misfit>,
    },
    /// The scheduler placed the pipeline's threads, on a machine whose CPUs are not all alike.
    NotPinned {
        /// Whether two of them may share a core.
        one_core: bool,
        /// Whether they may be on different NUMA nodes.
        many_nodes: bool,
    },
    /// The kernel could reclaim memory during the measurement.
    MemoryNotLocked {
        why: String,
    },
    /// The journal's disk was full before the measurement ended.
    JournalDiskFull {
        why: AnyVersion<JournalFault>,
    },
    /// The journal could not be continued to the end of the measurement.
    JournalEnded {
        why: AnyVersion<JournalFault>,
    },
    /// The journaller waited for room.
    JournalWaits {
        waits: u64,
    },
    /// The pipeline's ring was full.
    RingFull {
        waits: u64,
        /// The producer's total wait.
        waited_ns: Nanos,
    },
    /// The kernel lost messages on their way.
    MessagesLost {
        /// The consumer that they did not reach.
        role: PipelineRole,
        lost: u64,
    },
    /// Messages were lost or out of order: a bug, unless they travelled through the kernel.
    Disordered {
        /// The consumer of the messages.
        role: PipelineRole,
        disordered: u64,
    },
    /// The stalls were attributed again, from the raw trace.
    AttributedAgain {
        /// The version that attributed them again.
        by: String,
        /// The version that recorded them.
        recorded_by: String,
    },
    /// Some stalls keep the verdict of their recording, because the raw trace around them was not kept.
    VerdictsKept {
        /// The number of these stalls.
        kept: u64,
        /// The number of all stalls.
        stalls: u64,
    },
    /// The imported file ends before its last page, or pages of it are damaged.
    ImportCut {
        /// CPUs whose records are incomplete.
        cpus: CpuSet,
    },
    /// Pages of the imported file are out of order, and were left out.
    ImportDisordered {
        pages: u64,
    },
    /// Records of the imported file are so far out of order that they got the time of the one before.
    ImportMoved {
        records: u64,
    },
    /// The clock of the imported file is not the same on all CPUs.
    ImportLocalClock,
    /// A process was followed by its id: an imported file does not state which older threads belong to it.
    ImportProcess {
        pid: i32,
    },
    /// Rows of the run are inconsistent.
    InconsistentRows {
        /// The number of stalls and attributions concerned.
        rows: u64,
    },
    /// A warning of another version, or one that exists only as text.
    #[serde(untagged)]
    Other(OtherWarning),
}

/// Why stalls are counted and not attributed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoKernelEvents {
    /// Whether kernel events were requested; otherwise the user gave `--no-trace`.
    pub wanted: bool,
    /// Why there were none; null if none were requested.
    pub problem: Option<SourceProblem>,
}

/// A warning whose fields this version does not know, kept as it was written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherWarning {
    pub id: String,
    /// Its sentences, if the writer gave them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// How a recording uses its CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CpuUse {
    /// Each runs a probe.
    Measured,
    /// Followed threads may run on them.
    Followed,
    /// They are watched passively.
    Watched,
    /// They run the pipeline's threads.
    Pipeline,
}

/// One of our own measuring threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MeasuringThread {
    Cpu(CpuId),
    /// A thread of the pipeline.
    Role(PipelineRole),
}

impl Warning {
    /// A warning that exists only as text.
    #[must_use]
    pub fn worded(id: &str, text: &str) -> Warning {
        Warning::Other(OtherWarning {
            id: id.into(),
            text: text.into(),
            fields: Map::new(),
        })
    }

    /// The stable, hyphenated name of its kind, as in JSON.
    #[must_use]
    pub fn id(&self) -> String {
        match serde_json::to_value(self)
            .ok()
            .and_then(|mut value| value.get_mut("id").map(Value::take))
        {
            Some(Value::String(id)) => id,
            _ => String::new(),
        }
    }
}

impl From<JournalEnd> for Warning {
    fn from(end: JournalEnd) -> Warning {
        match end {
            JournalEnd {
                disk_full: true,
                why,
            } => Warning::JournalDiskFull { why },
            JournalEnd {
                disk_full: false,
                why,
            } => Warning::JournalEnded { why },
        }
    }
}

/// Figures that only the recorder's memory holds until it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MissingFigure {
    /// The samples of a probe that were not stalls: their number, the shortest, the percentiles, the covered time.
    Samples,
    /// The time accounts of threads, or of CPUs that were watched.
    Accounts,
    /// The messages of a pipeline: their number, and the percentiles of their times.
    Messages,
    /// How many kernel records were lost.
    Losses,
    /// The machine and its settings.
    Machine,
    /// What the recording cost.
    Cost,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn its_fields_stand_beside_its_id() {
        let warning = Warning::DroppedRecords {
            thread: MeasuringThread::Cpu(CpuId(3)),
            dropped: 7,
        };
        let text = json!({"id": "dropped-records", "thread": {"cpu": 3}, "dropped": 7});
        assert_eq!(serde_json::to_value(&warning).unwrap(), text);
        assert_eq!(serde_json::from_value::<Warning>(text).unwrap(), warning);
        assert_eq!(warning.id(), "dropped-records");
        let ended = |disk_full| {
            Warning::from(JournalEnd {
                disk_full,
                why: JournalFault::StockOverfilled.into(),
            })
            .id()
        };
        assert_eq!(
            [ended(true), ended(false)],
            ["journal-disk-full", "journal-ended"]
        );
    }

    #[test]
    fn what_another_version_wrote_is_kept_as_it_is() {
        for text in [
            json!({"id": "no-free-cpu", "text": "Every usable CPU (0-1) is measured."}),
            json!({"id": "no-kernel-events", "text": "Stalls were measured but not attributed."}),
            json!({"id": "sun-spots", "seen": 3, "how": {"by": "eye"}}),
        ] {
            let warning: Warning = serde_json::from_value(text.clone()).unwrap();
            assert!(matches!(warning, Warning::Other(_)), "{warning:?}");
            assert_eq!(warning.id(), text["id"]);
            assert_eq!(serde_json::to_value(&warning).unwrap(), text);
        }
        let old = json!({"id": "interrupted", "text": "The recording was ended before its time."});
        assert_eq!(
            serde_json::from_value::<Warning>(old).unwrap(),
            Warning::Interrupted
        );
    }
}
