//! What a recorder did beside reading pages of the kernel's buffers: with it, a replay takes the same steps.
//!
//! A recorder works in turns. In each it reads the pages that the kernel has, then hands what they hold and
//! what the probes saw to attribution. Pages are kept as they are; all else that went into a verdict is here,
//! so that the same verdicts come out again whatever the turns' timing was.

use crate::{
    Comm, CpuId, Gap, Name, Nanos, Owner, Quota, QuotaLimit, StallId, TaskIdentity, Ticks,
};
use serde::{Deserialize, Serialize};

/// One turn, kept behind its pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DrainTurn {
    /// Its number, from 0.
    pub number: u64,
    /// Where threads are followed: records up to this time were put in order and handed over; all that had
    /// come, where it is the greatest.
    pub now: Ticks,
    /// Names of threads that were read elsewhere while the pages were decoded, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<NameRead>,
    /// Names of threads that were read while stalls were attributed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<(i32, String)>,
    /// What threads belonged to that were asked for while stalls were attributed, where that is not what was
    /// said of them last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub identities: Vec<IdentityRead>,
    /// System management interrupts since the turn before; `None` where they cannot be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smi: Option<u64>,
    /// Interrupt vectors without a tracepoint that counted up since the turn before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub untraced: Vec<(CpuId, Vec<String>)>,
    /// Time that the host gave to others since the turn before, of CPUs where the kernel counted some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stolen: Vec<(CpuId, Nanos)>,
    /// Page faults since the turn before of the threads that measure these CPUs, as the kernel counts them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<(CpuId, u64)>,
    /// When the counts of CPU quotas were read; zero where none is known of.
    #[serde(skip_serializing_if = "is_zero")]
    pub quotas_read: Ticks,
    /// Control groups that were throttled since they were read before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub throttled: Vec<ThrottledGroup>,
    /// The groups with a CPU quota that a thread is in, where that is not what was said of it last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<(i32, Vec<Name>)>,
    /// Whether the measurement had begun for the recorder; until then entry and exit costs are learnt from
    /// the warm-up.
    pub measuring: bool,
    /// Gaps that are no stalls of the run, a CPU each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warm_up: Vec<WarmUpTurn>,
    /// Stalls of the run with a smaller number were handed to attribution by the end of this turn.
    pub stalls: u64,
    /// Slow messages of this turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageTimesRow>,
    /// The recording ended at this time; this is its last turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Ticks>,
}

fn is_zero(ticks: &Ticks) -> bool {
    *ticks == Ticks(0)
}

/// A control group whose CPU quota was used up since its counts were read before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThrottledGroup {
    /// Which, as `/proc/PID/cgroup` names it.
    pub cgroup: Name,
    /// CPU time that it is granted, microseconds.
    pub quota_us: u64,
    /// In each of these, microseconds.
    pub period_us: u64,
    /// Periods in which it was throttled.
    pub times: u64,
    /// For how long, summed over the CPUs, microseconds.
    pub throttled_us: u64,
}

impl ThrottledGroup {
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
        }
    }
}

/// A thread's name from a source other than a record: it says what lies beyond the records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameRead {
    /// So many records of the turn had been decoded.
    pub after: u64,
    /// Which thread.
    pub tid: i32,
    /// Its name.
    pub name: String,
}

/// What a thread belonged to when it was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdentityRead {
    /// Its id.
    pub tid: i32,
    /// Its name then: ids are used again.
    pub comm: String,
    /// Its process; `None` where it was not known any more, as of all that follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tgid: Option<i32>,
    /// The name of that, of a thread that is not its process's first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<Name>,
    /// Its user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Its control group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<Name>,
    /// Whether it is one of the kernel's own threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<bool>,
}

impl IdentityRead {
    /// As it was found.
    #[must_use]
    pub fn new(tid: i32, comm: Comm, identity: &TaskIdentity) -> IdentityRead {
        let owner = identity.owner.as_ref();
        IdentityRead {
            tid,
            comm: comm.to_string(),
            tgid: identity.tgid,
            process: identity.process.clone(),
            uid: owner.map(|owner| owner.uid),
            cgroup: owner.and_then(|owner| owner.cgroup.clone()),
            kernel: identity.kernel,
        }
    }

    /// As it was found.
    #[must_use]
    pub fn identity(&self) -> TaskIdentity {
        let owner = self.uid.map(|uid| Owner {
            uid,
            cgroup: self.cgroup.clone(),
        });
        TaskIdentity {
            tgid: self.tgid,
            process: self.process.clone(),
            owner,
            kernel: self.kernel,
        }
    }
}

/// What one CPU's probe reported before its measurement began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUpTurn {
    /// Which CPU.
    pub cpu: CpuId,
    /// Gaps of the warm-up: start and length.
    pub gaps: Vec<(Ticks, Ticks)>,
    /// The first read of the measurement, if it came in this turn. Gaps stand before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<Ticks>,
}

impl WarmUpTurn {
    /// Its gaps.
    pub fn gaps(&self) -> impl Iterator<Item = Gap> + '_ {
        self.gaps.iter().map(|(start, length)| Gap {
            start: *start,
            length: *length,
        })
    }
}

/// What a slow message's stall does not say: its stall reaches from when it was due to its reception.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageTimesRow {
    /// The message's stall.
    pub stall: StallId,
    /// When it was published.
    pub published: Ticks,
    /// When the message before it was published.
    pub published_before: Ticks,
    /// When the message before it was received.
    pub received_before: Ticks,
    /// How long the producer waited for a slot, just before it published.
    pub waited: Ticks,
}

/// Something that was set before a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupStep {
    /// The number of the turn that came next.
    pub before_turn: u64,
    /// What was set.
    #[serde(flatten)]
    pub step: Setup,
}

/// What a recorder sets up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "set", rename_all = "snake_case")]
pub enum Setup {
    /// Time between these counts.
    Measure {
        /// From.
        from: Ticks,
        /// To; the greatest where it was not known.
        until: Ticks,
    },
    /// How threads are followed.
    Following {
        /// Episodes of a thread no further apart count as one.
        join_within: Ticks,
        /// How long episodes are remembered for messages.
        remember: Ticks,
        /// Whether threads that a followed process makes are followed.
        new_threads: bool,
        /// Whether processes that it makes are followed.
        children: bool,
        /// Threads of these names are followed wherever they are met.
        names: Vec<String>,
        /// Followed at most.
        most_threads: u64,
    },
    /// A thread is followed from here on.
    Follow {
        /// From.
        at: Ticks,
        /// Which.
        tid: i32,
        /// Its name.
        comm: String,
        /// What it does in a probe.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<crate::PipelineRole>,
        /// Whether it slept then, as far as that was known.
        asleep: bool,
        /// What it was stopped by then; none where it was not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stopped_by: Option<crate::StoppedBy>,
    },
    /// How CPUs are watched without a probe.
    Watching {
        /// Which.
        cpus: crate::CpuSet,
        /// Stretches of stolen time no further apart count as one.
        join_within: Ticks,
        /// Whether threads that a belonging process makes belong, too.
        new_threads: bool,
        /// Threads of these names belong wherever they are met.
        names: Vec<String>,
    },
    /// A thread belongs on the watched CPUs from here on.
    Belongs {
        /// Which.
        tid: i32,
        /// Its name.
        comm: String,
        /// Only on this CPU; on all of them where there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<CpuId>,
        /// Whether it slept then, as far as that was known.
        asleep: bool,
    },
    /// A watched CPU was found to be offline.
    Gone {
        /// Which.
        cpu: CpuId,
        /// When: it wrote no record later, unless it came back.
        at: Ticks,
    },
    /// Set by a newer version.
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
