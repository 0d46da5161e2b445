//! The recorder's inputs other than pages of the kernel's buffers. With them, a replay can take the same steps.
//!
//! A recorder works in turns. In each turn it reads the available pages, and passes their records and the probes' gaps
//! to attribution. The pages are stored unchanged. All other inputs of the verdicts are here, so a replay computes the
//! same verdicts, regardless of the timing of the turns.

use crate::{
    Comm, CpuId, Gap, KernelAddr, Name, Nanos, Owner, Quota, QuotaLimit, StallId, TaskIdentity,
    Ticks,
};
use serde::{Deserialize, Serialize};

/// One turn. It is stored after its pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DrainTurn {
    /// Its number, from 0.
    pub number: u64,
    /// With followed threads: the records up to this time were put in order and passed on. The maximum value means all
    /// records.
    pub now: Ticks,
    /// Names of threads that came from other sources than records while the pages were decoded, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<NameRead>,
    /// Names of threads that were read while stalls were attributed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<(i32, String)>,
    /// Identities of threads that were read while stalls were attributed, if they differ from the last stored ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub identities: Vec<IdentityRead>,
    /// Kernel functions that were named first in this turn. The context of a finished recording has all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<(KernelAddr, Name)>,
    /// System management interrupts since the previous turn; `None` if they cannot be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smi: Option<u64>,
    /// Interrupt vectors without a tracepoint whose counters rose since the previous turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub untraced: Vec<(CpuId, Vec<String>)>,
    /// Stolen time since the previous turn, of CPUs where the kernel counted some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stolen: Vec<(CpuId, Nanos)>,
    /// Page faults since the previous turn, by the kernel's count, of the threads that measure these CPUs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<(CpuId, u64)>,
    /// Earlier reads of the counts of CPU quotas since the previous turn, in order; empty if nothing was throttled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quota_reads: Vec<QuotaRead>,
    /// When the counts of CPU quotas were read; zero without known quotas.
    #[serde(skip_serializing_if = "is_zero")]
    pub quotas_read: Ticks,
    /// Control groups that were throttled since the previous read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub throttled: Vec<ThrottledGroup>,
    /// The groups with a CPU quota that a thread is in, if they differ from the last stored ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<(i32, Vec<Name>)>,
    /// Threads whose control group, or one above it, may have been frozen or thawed since the previous read of the
    /// quota counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frozen: Vec<i32>,
    /// Those of them that version 1 of control groups holds frozen at that read. Since Linux 6.1 it leaves a sleeping
    /// thread in place, without a record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<i32>,
    /// The time span in which the trace is not trusted, because another process wrote to its controls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<(Ticks, Ticks)>,
    /// Whether the recorder had begun the measurement. Before that, attribution measures entry and exit costs from the
    /// warm-up.
    pub measuring: bool,
    /// Gaps that are not stalls of the run, by CPU.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warm_up: Vec<WarmUpTurn>,
    /// By the end of this turn, attribution has the run's stalls with lower numbers.
    pub stalls: u64,
    /// Slow messages of this turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageTimesRow>,
    /// The end of the recording, in its last turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Ticks>,
}

fn is_zero(ticks: &Ticks) -> bool {
    *ticks == Ticks(0)
}

/// A read of the counts of CPU quotas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaRead {
    pub at: Ticks,
    /// Control groups that were throttled since the previous read.
    pub throttled: Vec<ThrottledGroup>,
}

/// A control group that used up its CPU quota since the previous read of its counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThrottledGroup {
    /// Its path, as in `/proc/PID/cgroup`.
    pub cgroup: Name,
    /// Granted CPU time, microseconds.
    pub quota_us: u64,
    /// Length of a period, microseconds.
    pub period_us: u64,
    /// Periods in which it was throttled.
    pub times: u64,
    /// Throttled time, summed over the CPUs, microseconds.
    pub throttled_us: u64,
    /// Whether a process wrote its quota meanwhile, which may have ended the throttling without a record.
    pub changed: bool,
}

impl ThrottledGroup {
    /// Throttled time, summed over the CPUs.
    #[must_use]
    pub fn throttled(&self) -> Nanos {
        Nanos(self.throttled_us.saturating_mul(1000))
    }

    /// The quota as a culprit.
    #[must_use]
    pub fn quota(&self) -> Quota {
        let limit = QuotaLimit {
            quota_us: self.quota_us,
            period_us: self.period_us,
        };
        Quota {
            cgroup: self.cgroup.clone(),
            limit: Some(limit),
            beside: None,
        }
    }
}

/// A thread's name from a source other than a record, for threads that no record names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameRead {
    /// The number of the turn's records that had been decoded before.
    pub after: u64,
    pub tid: i32,
    pub name: String,
}

/// The identity of a thread at the time of the read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdentityRead {
    pub tid: i32,
    /// Its name at that time: ids are reused.
    pub comm: String,
    /// Its process id; `None` if it was no longer known, which holds for all later fields, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tgid: Option<i32>,
    /// The name of its process, for a thread other than its process's first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<Name>,
    /// The file that it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executable: Option<Name>,
    /// Whether it is a kernel thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Name>,
}

impl IdentityRead {
    #[must_use]
    pub fn new(tid: i32, comm: Comm, identity: &TaskIdentity) -> IdentityRead {
        let owner = identity.owner.as_ref();
        IdentityRead {
            tid,
            comm: comm.to_string(),
            tgid: identity.tgid,
            process: identity.process.clone(),
            uid: owner.and_then(|owner| owner.uid),
            cgroup: owner.and_then(|owner| owner.cgroup.clone()),
            executable: owner.and_then(|owner| owner.executable.clone()),
            kernel: identity.kernel,
            allowed: identity.allowed.clone(),
        }
    }

    #[must_use]
    pub fn identity(&self) -> TaskIdentity {
        let owner = Owner {
            uid: self.uid,
            cgroup: self.cgroup.clone(),
            executable: self.executable.clone(),
        };
        TaskIdentity {
            tgid: self.tgid,
            process: self.process.clone(),
            owner: owner.known(),
            kernel: self.kernel,
            allowed: self.allowed.clone(),
        }
    }
}

/// What one CPU's probe reported before its measurement began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUpTurn {
    pub cpu: CpuId,
    /// Gaps of the warm-up: start and length.
    pub gaps: Vec<(Ticks, Ticks)>,
    /// The first read of the measurement, if it came in this turn, after the gaps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<Ticks>,
}

impl WarmUpTurn {
    pub fn gaps(&self) -> impl Iterator<Item = Gap> + '_ {
        self.gaps.iter().map(|(start, length)| Gap {
            start: *start,
            length: *length,
        })
    }
}

/// The times of a slow message that its stall does not contain: the stall goes from the intended time to the reception.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageTimesRow {
    pub stall: StallId,
    /// When the message was published.
    pub published: Ticks,
    /// When the previous message was published.
    pub published_before: Ticks,
    /// When the previous message was received.
    pub received_before: Ticks,
    /// How long the producer waited for a slot, just before the publication.
    pub waited: Ticks,
}

/// A setup step before a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupStep {
    /// The number of the next turn.
    pub before_turn: u64,
    #[serde(flatten)]
    pub step: Setup,
}

/// A setup step of the recorder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "set", rename_all = "snake_case")]
pub enum Setup {
    /// Sets the time span that counts.
    Measure {
        from: Ticks,
        /// The end; the maximum value if it was not yet known.
        until: Ticks,
    },
    /// Sets how threads are followed.
    Following {
        /// Episodes of a thread with at most this distance count as one.
        join_within: Ticks,
        /// How long episodes are kept for messages.
        remember: Ticks,
        /// Whether threads that a followed process makes are followed.
        new_threads: bool,
        /// Whether processes that a followed process makes are followed.
        children: bool,
        /// Threads with these names are followed wherever they appear.
        names: Vec<String>,
        /// Restricts `names` to this user, if set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<u32>,
        /// Maximum of followed threads.
        most_threads: u64,
        /// Whether the stacks of threads that go to sleep are recorded.
        #[serde(default)]
        stacks: bool,
        /// The CPUs whose switches are recorded, unless all are.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        switches: Option<crate::CpuSet>,
    },
    /// A thread is followed from now on.
    Follow {
        at: Ticks,
        tid: i32,
        comm: String,
        /// Its role in a probe.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<crate::PipelineRole>,
        /// Whether it slept then, if that was known.
        asleep: bool,
        /// What had stopped it then, if anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stopped_by: Option<crate::StoppedBy>,
    },
    /// Sets how CPUs are watched without a probe.
    Watching {
        cpus: crate::CpuSet,
        /// Stretches of stolen time with at most this distance count as one.
        join_within: Ticks,
        /// Whether threads that a belonging process makes also belong.
        new_threads: bool,
        /// Whether processes that a belonging thread makes also belong.
        #[serde(default)]
        children: bool,
        /// Threads with these names belong wherever they appear.
        names: Vec<String>,
    },
    /// A thread belongs on the watched CPUs from now on.
    Belongs {
        tid: i32,
        comm: String,
        /// Only on this CPU, if set; otherwise on all of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<CpuId>,
        /// Whether it slept then, if that was known.
        asleep: bool,
    },
    /// A watched CPU is offline.
    Gone {
        cpu: CpuId,
        /// The time; later records of this CPU exist only if it came back.
        at: Ticks,
    },
    /// Written by a newer version.
    #[serde(other)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_takes_no_room_and_what_is_unknown_is_passed_over() {
        let turn = DrainTurn {
            number: 7,
            stalls: 3,
            ..DrainTurn::default()
        };
        let text = serde_json::to_string(&turn).unwrap();
        assert_eq!(text, r#"{"number":7,"now":0,"measuring":false,"stalls":3}"#);
        assert_eq!(
            serde_json::from_str::<DrainTurn>(r#"{"number":7,"stalls":3,"newer":[1]}"#).unwrap(),
            turn
        );
        let step = SetupStep {
            before_turn: 2,
            step: Setup::Measure {
                from: Ticks(1),
                until: Ticks(9),
            },
        };
        let text = serde_json::to_string(&step).unwrap();
        assert_eq!(
            text,
            r#"{"before_turn":2,"set":"measure","from":1,"until":9}"#
        );
        assert_eq!(serde_json::from_str::<SetupStep>(&text).unwrap(), step);
        let newer = r#"{"before_turn":2,"set":"colour","of":{"the":"sky"}}"#;
        assert_eq!(
            serde_json::from_str::<SetupStep>(newer).unwrap().step,
            Setup::Unknown
        );
    }
}
