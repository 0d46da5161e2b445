//! The available sources of evidence, and the missing ones.

use crate::words::open_words;
use crate::{SourceLoss, SourceProblem};
use serde::{Deserialize, Serialize};

open_words! {
    /// How much of a source is available.
    SourceStatus {
        Available = "available",
        /// Partly: `problems` say what is missing.
        Degraded = "degraded",
        /// It exists, but this user may not use it.
        Denied = "denied",
        /// This machine does not have it.
        Absent = "absent",
    }
}

/// One source of evidence: its availability, the effect of its absence, and the reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceReport {
    /// Short stable name, as `--require` takes it: `tracefs`, `senders`, `smi`, ...
    pub name: String,
    pub status: SourceStatus,
    /// The reasons; empty if available.
    #[serde(default)]
    pub problems: Vec<SourceProblem>,
    /// The effects on the analysis; empty if available.
    #[serde(default)]
    pub losses: Vec<SourceLoss>,
    /// Records known to be lost during the run.
    pub lost: u64,
}

impl SourceReport {
    /// A fully available source.
    #[must_use]
    pub fn available(name: &str) -> SourceReport {
        SourceReport::of_status(name, SourceStatus::Available)
    }

    /// A source with nothing but a status.
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

    /// A source that is partly missing.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CpuId, TracefsFlaw};
    use serde_json::json;

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
