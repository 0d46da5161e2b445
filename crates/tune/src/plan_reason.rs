//! Why a plan makes or omits a change, as data.

use crate::finding::Finding;
use crate::knob::Risk;
use crate::knob_reason::KnobReason;
use crate::run_culprits::Win;
use jitterscope_model::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

/// Maximum number of culprits named with a reason.
const MOST_NAMED: usize = 3;

/// What a run measured of the culprits that a knob answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Measured {
    /// The largest culprits, as in [`Win::culprits`].
    pub culprits: Vec<String>,
    /// Time of all of them.
    pub total_ns: Nanos,
    /// The number of stalls with any of them; 0 if all were too short to be stored individually.
    pub count: u64,
}

impl From<&Win> for Measured {
    fn from(win: &Win) -> Measured {
        let culprits = win.culprits.iter().take(MOST_NAMED).cloned().collect();
        Measured {
            culprits,
            total_ns: win.total_ns,
            count: win.count,
        }
    }
}

/// Why a change is made. In JSON it has its stable `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum ChangeReason {
    /// To remove what the knob's declaration says.
    AsDeclared {
        /// The declaration's text ([`Knob::removes`](crate::Knob::removes)).
        words: &'static str,
    },
    /// A run measured culprits that the knob answers.
    Measured(Measured),
    /// Another knob of the plan does harm without it.
    Needed {
        /// That knob.
        by: &'static str,
    },
    /// To make other changes permanent.
    Lasting,
}

/// Why a selected knob has no change in the plan. In JSON `because` is its stable name, beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum SkipReason {
    AlreadySo {
        found: Option<Finding>,
    },
    LeftOut,
    /// This machine does not have it, or it does not concern these CPUs.
    NotHere {
        cause: KnobReason,
    },
    /// It cannot be read.
    Unreadable {
        cause: KnobReason,
    },
    /// It is set only at boot.
    NeedsReboot {
        /// The boot parameters as typed.
        parameters: Vec<String>,
    },
    /// It must be done by hand.
    ByHand {
        /// The instructions in the declaration's words ([`Knob::by_hand`](crate::Knob::by_hand)).
        words: &'static str,
    },
    /// It must be named because of its risk.
    Risk {
        /// The measured culprits that it answers.
        measured: Measured,
        risk: Risk,
    },
    /// Its culprits took too little time to matter.
    Negligible {
        measured: Measured,
    },
    /// It was changed, but cannot be made permanent.
    ForNow {
        /// The knob that has the effect from boot.
        at_boot: &'static str,
    },
}

impl SkipReason {
    /// Whether a user who named the knob did not get it.
    #[must_use]
    pub fn is_denial(&self) -> bool {
        !matches!(
            self,
            SkipReason::AlreadySo { .. } | SkipReason::LeftOut | SkipReason::ForNow { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explicit_knob_without_change_is_refused() {
        let cause = || KnobReason::NoHousekeeping;
        for (reason, denied) in [
            (SkipReason::AlreadySo { found: None }, false),
            (SkipReason::LeftOut, false),
            (
                SkipReason::ForNow {
                    at_boot: "isolcpus",
                },
                false,
            ),
            (SkipReason::NotHere { cause: cause() }, true),
            (SkipReason::Unreadable { cause: cause() }, true),
            (
                SkipReason::NeedsReboot {
                    parameters: vec!["a".into()],
                },
                true,
            ),
            (SkipReason::ByHand { words: "x" }, true),
        ] {
            assert_eq!(reason.is_denial(), denied, "{reason:?}");
        }
    }
}
