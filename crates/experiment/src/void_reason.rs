//! Why a pair, or a run where the arms do not take turns, does not count, as data.

use crate::{Arm, Predicted};
use jitterscope_model::{Doubt, Nanos};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Why it does not count. In JSON it has its stable `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum VoidReason {
    /// It is said to count, and has no runs.
    NotMeasured,
    /// The command that was measured failed.
    CommandFailed {
        /// In which arm.
        arm: Arm,
        /// As the system tells it.
        status: String,
    },
    /// A run names no culprits, and some are predicted to go.
    NamesNobody {
        /// Of which arm.
        arm: Arm,
        /// What its evidence fails by; nothing where no kernel events were recorded.
        doubts: Vec<Doubt>,
    },
    /// What the change removes was not back without it.
    NotBack {
        /// Which, where several are predicted.
        which: Option<String>,
    },
    /// An arm was not seen to be in force.
    NotInForce {
        /// Which.
        arm: Arm,
        /// Within the time that it may take.
        within_ns: Nanos,
    },
    /// Too few runs without the change were made before the reboot, and none can be made after it.
    TooFewBeforeReboot {
        /// So many.
        made: u64,
        /// Of these.
        wanted: u64,
    },
    /// In the words of an earlier version.
    #[serde(untagged)]
    Worded(String),
    /// What a newer version wrote.
    #[serde(untagged)]
    Unknown(Map<String, Value>),
}

impl VoidReason {
    /// What is predicted to go was not back; `alone`: nothing else is predicted.
    pub(crate) fn not_back(what: &Predicted, alone: bool) -> VoidReason {
        VoidReason::NotBack { which: (!alone).then(|| what.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_every_version_wrote_is_read_and_kept() {
        let doubts = vec![Doubt::EventsLost { lost: 200, events: 5_138 }];
        let lost = json!({"kind": "events_lost", "lost": 200, "events": 5_138});
        for (text, meant) in [
            (
                json!({"id": "names_nobody", "arm": "B", "doubts": [lost]}),
                Some(VoidReason::NamesNobody { arm: Arm::B, doubts }),
            ),
            (json!({"id": "not_measured"}), Some(VoidReason::NotMeasured)),
            (json!("events were lost"), Some(VoidReason::Worded("events were lost".into()))),
            (json!({"id": "sun_spots", "seen": 3}), None),
        ] {
            let read: VoidReason = serde_json::from_value(text.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), text);
            match meant {
                Some(meant) => assert_eq!(read, meant),
                None => assert!(matches!(read, VoidReason::Unknown(_)), "{read:?}"),
            }
        }
    }
}
