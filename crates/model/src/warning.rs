use crate::{
    AnyVersion, CpuId, CpuSet, EndedEarly, JournalEnd, JournalFault, Misfit, NamedOwner, Nanos,
    PipelineRole, QuotaLimit, SourceProblem, TscFlaw,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What limits what a run can say, as data. The sentences are made where a person reads them.
///
/// In JSON each has its stable, hyphenated `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum Warning {
    /// Stalls are counted, not attributed.
    NoKernelEvents(NoKernelEvents),
    /// Every usable CPU is taken, so our own threads ran on the same ones.
    NoFreeCpu {
        /// The CPUs.
        cpus: CpuSet,
        /// What they were taken for.
        taken: CpuUse,
    },
    /// Nothing was seen to belong on some of the CPUs.
    NobodyBelongs {
        /// The CPUs.
        cpus: CpuSet,
        /// How long was looked before the measurement.
        look_ns: Nanos,
    },
    /// No thread was met for any time.
    NobodyMet {
        /// Who was named; null where nobody was.
        whom: Option<AnyVersion<NamedOwner>>,
        /// On watched CPUs, of which nothing counts as stolen then.
        watching: bool,
    },
    /// The command that was followed ended badly.
    CommandFailed {
        /// As the system tells it.
        status: String,
    },
    /// Some threads were not followed.
    TooManyThreads {
        /// So many.
        refused: u64,
        /// Followed at most.
        most: u64,
    },
    /// Threads of the name were met late, or not before their end.
    NotFollowed {
        /// Met only after they had run under the name.
        late: u64,
        /// Of which nothing was seen but their end.
        missed: u64,
    },
    /// The kernel does not record what some threads do.
    UnrecordedSwitches {
        /// Switches without a record.
        count: u64,
        /// Where.
        cpus: CpuSet,
    },
    /// More happened than is kept in order.
    Folded {
        /// Stalled time of which only sums were kept.
        time_ns: Nanos,
    },
    /// A control group used up its CPU quota.
    CpuQuota {
        /// Its path below the controller.
        cgroup: String,
        /// What it is granted, where that could be read.
        limit: Option<QuotaLimit>,
        /// Periods in which it was used up.
        times: u64,
        /// How long its threads were not let run, summed over the CPUs.
        time_ns: Nanos,
    },
    /// A CPU's frequency was changed meanwhile.
    FrequencyChanged {
        /// Which.
        cpu: CpuId,
        /// So often.
        times: u64,
        /// The lowest that it was set to.
        lowest_khz: u32,
        /// The highest.
        highest_khz: u32,
    },
    /// CPUs went offline.
    CpuOffline {
        /// Which.
        cpus: CpuSet,
    },
    /// Our own threads run on the idle control.
    IdleControlShared {
        /// The idle control.
        cpu: CpuId,
    },
    /// Our own threads run on the other hardware thread of a measured core.
    SmtSibling {
        /// The measured CPU.
        cpu: CpuId,
        /// Where our own threads could run.
        siblings: CpuSet,
    },
    /// Real-time throttling will stall the probe by itself.
    RtThrottling {
        /// `kernel.sched_rt_runtime_us`.
        runtime_us: i64,
        /// `kernel.sched_rt_period_us`.
        period_us: i64,
    },
    /// The TSC is not used.
    ClockFallback {
        /// Why not.
        reason: AnyVersion<TscFlaw>,
    },
    /// The TSC is used, though the CPU does not promise what that takes.
    ClockDoubt {
        /// What it does not promise.
        reason: AnyVersion<TscFlaw>,
    },
    /// The probe's own bookkeeping is as long as its stalls.
    OwnBookkeeping {
        /// Whose probe.
        cpu: CpuId,
        /// Stalls that are its own bookkeeping.
        count: u64,
        /// The shortest gap that counts as a stall.
        threshold_ns: Nanos,
        /// What storing a stall takes at most.
        store_ns: Nanos,
    },
    /// Some stalls have no record.
    DroppedRecords {
        /// Whose stalls.
        thread: MeasuringThread,
        /// So many.
        dropped: u64,
    },
    /// The ring buffer overran.
    TraceLost {
        /// Kernel events.
        lost: u64,
    },
    /// Kernel events were lost, and whoever reads them had waited for rows to be written.
    WriterBehind {
        /// So long in all.
        waited_ns: Nanos,
    },
    /// A CPU's measurement ended early.
    CpuEndedEarly {
        /// Which.
        cpu: CpuId,
        /// What ended it.
        why: AnyVersion<EndedEarly>,
    },
    /// A thread that measures faulted meanwhile.
    OwnPageFaults {
        /// Which.
        thread: MeasuringThread,
        /// Page faults.
        faults: u64,
    },
    /// Tracing instances of an earlier, killed recorder were removed.
    LeftoversRemoved {
        /// Instances.
        count: u64,
    },
    /// The raw trace was not kept: the disk was filling up.
    TraceDiscarded {
        /// It was found full when the run was closed, not before.
        at_the_end: bool,
    },
    /// The disk filled up, so the recording ended while it could still be closed.
    DiskFull {
        /// Stalls at its end that are counted and not stored.
        unstored: u64,
    },
    /// An output beside the run did not get all rows.
    OutputLost {
        /// As it was named.
        output: String,
        /// Rows that it got.
        delivered: u64,
        /// Rows that it did not.
        lost: u64,
        /// What it said.
        why: String,
    },
    /// The recording was ended early.
    Interrupted,
    /// The pipeline's placement was refused, and forced.
    ForcedPlacement {
        /// What is wrong with it.
        misfit: AnyVersion<Misfit>,
    },
    /// The pipeline's threads were left to the scheduler on a machine whose CPUs are not alike.
    NotPinned {
        /// Two may be put on one core.
        one_core: bool,
        /// They may be put on different NUMA nodes.
        many_nodes: bool,
    },
    /// Memory could be reclaimed meanwhile.
    MemoryNotLocked {
        /// What the system said.
        why: String,
    },
    /// The journal's disk was full before the measurement ended.
    JournalDiskFull {
        /// What the system said.
        why: AnyVersion<JournalFault>,
    },
    /// The journal could not be continued to the end of the measurement.
    JournalEnded {
        /// What failed.
        why: AnyVersion<JournalFault>,
    },
    /// The journaller waited for room.
    JournalWaits {
        /// So often.
        waits: u64,
    },
    /// The pipeline's ring was full.
    RingFull {
        /// So often.
        waits: u64,
        /// The producer waited so long in all.
        waited_ns: Nanos,
    },
    /// Messages were lost or changed places: a bug.
    Disordered {
        /// Whose messages.
        role: PipelineRole,
        /// So many.
        disordered: u64,
    },
    /// The stalls were attributed again, from the raw trace.
    AttributedAgain {
        /// The version that did it.
        by: String,
        /// The version that recorded it.
        recorded_by: String,
    },
    /// Some stalls keep the verdict of their recording: the raw trace around them was not kept.
    VerdictsKept {
        /// So many.
        kept: u64,
        /// Of these.
        stalls: u64,
    },
    /// Rows of the run do not fit together.
    InconsistentRows {
        /// Stalls and attributions.
        rows: u64,
    },
    /// What another version wrote, or what exists only in words.
    #[serde(untagged)]
    Other(OtherWarning),
}

/// Why stalls are counted and not attributed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "WrittenNoKernelEvents")]
pub struct NoKernelEvents {
    /// Kernel events were wanted; otherwise `--no-trace` was given.
    pub wanted: bool,
    /// Why there were none; null where none were wanted.
    pub problem: Option<SourceProblem>,
}

/// The same as any version wrote it: earlier ones said in words what stood in the way.
#[derive(Deserialize)]
struct WrittenNoKernelEvents {
    wanted: bool,
    #[serde(default)]
    problem: Option<SourceProblem>,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    fix: String,
}

impl From<WrittenNoKernelEvents> for NoKernelEvents {
    fn from(written: WrittenNoKernelEvents) -> NoKernelEvents {
        let WrittenNoKernelEvents {
            wanted,
            problem,
            reason,
            fix,
        } = written;
        NoKernelEvents {
            wanted,
            problem: problem.or_else(|| SourceProblem::worded(reason, fix)),
        }
    }
}

/// A warning whose fields this version does not know, kept as it was written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherWarning {
    /// Its id.
    pub id: String,
    /// Its sentences, where the writer gave them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// All else.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// What the CPUs of a recording were taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CpuUse {
    /// A probe on each.
    Measured,
    /// The threads that are followed may run on them.
    Followed,
    /// They are watched passively.
    Watched,
    /// The pipeline's threads.
    Pipeline,
}

/// A thread of ours that measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasuringThread {
    /// The probe of this CPU.
    Cpu(CpuId),
    /// A thread of the pipeline.
    Role(PipelineRole),
}

impl Warning {
    /// One in words alone.
    #[must_use]
    pub fn worded(id: &str, text: &str) -> Warning {
        Warning::Other(OtherWarning {
            id: id.into(),
            text: text.into(),
            fields: Map::new(),
        })
    }

    /// The stable, hyphenated name of its kind, as JSON has it.
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
    fn why_there_were_no_kernel_events_is_read_as_every_version_wrote_it() {
        let read = |text| serde_json::from_value::<Warning>(text).unwrap();
        let earlier =
            json!({"id": "no-kernel-events", "wanted": true, "reason": "denied", "fix": "be root"});
        let problem = SourceProblem::Worded {
            reason: "denied".into(),
            fix: "be root".into(),
        };
        let warning = Warning::NoKernelEvents(NoKernelEvents {
            wanted: true,
            problem: Some(problem),
        });
        assert_eq!(read(earlier), warning);
        assert_eq!(read(serde_json::to_value(&warning).unwrap()), warning);
        let unwanted = json!({"id": "no-kernel-events", "wanted": false, "reason": "", "fix": ""});
        let none = Warning::NoKernelEvents(NoKernelEvents {
            wanted: false,
            problem: None,
        });
        assert_eq!(read(unwanted), none);
        assert_eq!(none.id(), "no-kernel-events");
    }

    #[test]
    fn reasons_that_an_earlier_version_worded_are_read_as_its_words() {
        let words = || "as it was told".to_owned();
        for (text, meant) in [
            (
                json!({"id": "clock-fallback", "reason": words()}),
                Warning::ClockFallback {
                    reason: AnyVersion::Worded(words()),
                },
            ),
            (
                json!({"id": "clock-doubt", "reason": words()}),
                Warning::ClockDoubt {
                    reason: AnyVersion::Worded(words()),
                },
            ),
            (
                json!({"id": "forced-placement", "misfit": words()}),
                Warning::ForcedPlacement {
                    misfit: AnyVersion::Worded(words()),
                },
            ),
            (
                json!({"id": "nobody-met", "whom": words(), "watching": true}),
                Warning::NobodyMet {
                    whom: Some(AnyVersion::Worded(words())),
                    watching: true,
                },
            ),
            (
                json!({"id": "journal-ended", "why": words()}),
                Warning::JournalEnded {
                    why: AnyVersion::Worded(words()),
                },
            ),
        ] {
            assert_eq!(
                serde_json::from_value::<Warning>(text.clone()).unwrap(),
                meant
            );
            assert_eq!(serde_json::to_value(&meant).unwrap(), text);
        }
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
