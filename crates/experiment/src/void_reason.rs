//! Why a pair, or a run without interleaving, does not count, as data.

use crate::{Arm, Predicted};
use jitterscope_model::{Doubt, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why it does not count. In JSON it has its stable `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum VoidReason {
    /// It is marked as counting but has no runs.
    NotMeasured,
    /// The measured command failed.
    CommandFailed {
        arm: Arm,
        /// In the system's words.
        status: String,
    },
    /// A run names no culprits, although some are predicted.
    NamesNobody {
        arm: Arm,
        /// What its evidence fails by; empty if no kernel events were recorded.
        doubts: Vec<Doubt>,
    },
    /// The culprit that the change removes did not reappear without it.
    NotBack {
        /// The culprit, if several are predicted.
        which: Option<String>,
    },
    /// An arm was not seen to be in force.
    NotInForce { arm: Arm, within_ns: Nanos },
    /// Too few runs without the change were made before the reboot, and after it there can be none.
    TooFewBeforeReboot { made: u64, wanted: u64 },
}

impl VoidReason {
    /// A predicted culprit did not reappear; `alone`: nothing else is predicted.
    pub(crate) fn not_back(what: &Predicted, alone: bool) -> VoidReason {
        VoidReason::NotBack {
            which: (!alone).then(|| what.to_string()),
        }
    }
}
