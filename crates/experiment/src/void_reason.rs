//! Why a pair, or a run where the arms do not take turns, does not count, as data.

use crate::{Arm, Predicted};
use jitterscope_model::{Doubt, Nanos};
use serde::{Deserialize, Serialize};

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
}

impl VoidReason {
    /// What is predicted to go was not back; `alone`: nothing else is predicted.
    pub(crate) fn not_back(what: &Predicted, alone: bool) -> VoidReason {
        VoidReason::NotBack {
            which: (!alone).then(|| what.to_string()),
        }
    }
}
