//! What could be seen, and what could not.

use crate::words::open_words;
use crate::{SourceLoss, SourceProblem};
use serde::{Deserialize, Serialize};

open_words! {
    /// How much of a source there is.
    SourceStatus {
        /// All of it.
        Available = "available",
        /// Some of it: `problems` say what is missing.
        Degraded = "degraded",
        /// It is there, but not for this user.
        Denied = "denied",
        /// This machine has no such thing.
        Absent = "absent",
    }
}

/// One source of evidence: what there is of it, what its absence costs, what stands in the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct SourceReport {
    /// Short stable name, as `--require` takes it: `tracefs`, `senders`, `smi`, ...
    pub name: String,
    /// What there is.
    pub status: SourceStatus,
    /// Why it is so; none when available.
    pub problems: Vec<SourceProblem>,
    /// What cannot be seen because of it; nothing when available.
    pub losses: Vec<SourceLoss>,
    /// Records known to be lost during the run.
    pub lost: u64,
}

impl SourceReport {
    /// A source that is all there.
    #[must_use]
    pub fn available(name: &str) -> SourceReport {
        SourceReport::of_status(name, SourceStatus::Available)
    }

    /// A source of which no more is known than how much there is.
    #[must_use]
    pub fn of_status(name: &str, status: SourceStatus) -> SourceReport {
        SourceReport {
            name: name.into(),
            status,
            problems: Vec::new(),
            losses: Vec::new(),
            lost: 0,
        }
    }

    /// A source of which something is not there.
    #[must_use]
    pub fn limited(
        name: &str,
        status: SourceStatus,
        problem: SourceProblem,
        loss: SourceLoss,
    ) -> SourceReport {
        SourceReport {
            problems: vec![problem],
            losses: vec![loss],
            ..SourceReport::of_status(name, status)
        }
    }
}

/// A source as any version wrote it: earlier ones said in words what stood in the way.
#[derive(Deserialize)]
struct Written {
    name: String,
    status: SourceStatus,
    #[serde(default)]
    problems: Vec<SourceProblem>,
    #[serde(default)]
    losses: Vec<SourceLoss>,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    loses: String,
    #[serde(default)]
    fix: String,
    lost: u64,
}

impl From<Written> for SourceReport {
    fn from(written: Written) -> SourceReport {
        let Written {
            name,
            status,
            mut problems,
            mut losses,
            reason,
            loses,
            fix,
            lost,
        } = written;
        problems.extend(SourceProblem::worded(reason, fix));
        losses.extend(SourceLoss::worded(&loses));
        SourceReport {
            name,
            status,
            problems,
            losses,
            lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CpuId, TracefsFlaw};
    use serde_json::json;

    #[test]
    fn what_every_version_wrote_is_read() {
        let earlier = json!({"name": "smi", "status": "absent", "reason": "no driver", "loses": "who did it",
            "fix": "modprobe msr", "lost": 3});
        let read: SourceReport = serde_json::from_value(earlier).unwrap();
        let worded = SourceProblem::Worded {
            reason: "no driver".into(),
            fix: "modprobe msr".into(),
        };
        assert_eq!((&read.problems[..], read.lost), (&[worded][..], 3));
        assert_eq!(read.losses, [SourceLoss::Other("who did it".into())]);
        assert_eq!(
            serde_json::from_value::<SourceReport>(serde_json::to_value(&read).unwrap()).unwrap(),
            read
        );

        let nothing = json!({"name": "smi", "status": "available", "reason": "", "loses": "", "fix": "", "lost": 0});
        assert_eq!(
            serde_json::from_value::<SourceReport>(nothing).unwrap(),
            SourceReport::available("smi")
        );
    }

    #[test]
    fn a_problem_has_its_id_beside_its_fields_and_a_newer_one_is_kept() {
        let problem = SourceProblem::NoMsrDevice {
            cpu: CpuId(3),
            virtual_machine: false,
        };
        let written = json!({"id": "no_msr_device", "cpu": 3, "virtual_machine": false});
        assert_eq!(serde_json::to_value(&problem).unwrap(), written);
        assert_eq!(problem.id(), "no_msr_device");
        let flaw = TracefsFlaw::Missing {
            file: "events".into(),
        };
        let unusable = SourceProblem::TracefsUnusable { flaw };
        let text = serde_json::to_string(&unusable).unwrap();
        assert_eq!(
            serde_json::from_str::<SourceProblem>(&text).unwrap(),
            unusable
        );

        let newer = json!({"name": "perf", "status": "borrowed", "problems": [{"id": "sun_spots", "seen": 3}],
            "losses": ["shade"], "lost": 0});
        let read: SourceReport = serde_json::from_value(newer.clone()).unwrap();
        assert!(
            matches!(read.problems[..], [SourceProblem::Unknown(_)]),
            "{read:?}"
        );
        assert_eq!(
            (read.problems[0].id(), &read.losses[0]),
            ("sun_spots".into(), &SourceLoss::Other("shade".into()))
        );
        assert_eq!(serde_json::to_value(&read).unwrap(), newer);
    }
}
