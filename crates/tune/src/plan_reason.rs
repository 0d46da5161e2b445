//! Why a plan changes something or leaves it alone, as data.

use crate::finding::Finding;
use crate::knob::Risk;
use crate::knob_reason::KnobReason;
use crate::run_culprits::Win;
use jitterscope_model::Nanos;
use serde::Serialize;

/// Culprits named with a reason at most.
const MOST_NAMED: usize = 3;

/// What a run measured of the culprits that a knob answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Measured {
    /// The largest of the culprits, as [`Win::culprits`] has them.
    pub culprits: Vec<String>,
    /// Time of all of them.
    pub total_ns: Nanos,
    /// The stalls in which any of them took part; 0 where each was too short to be kept one by one.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum ChangeReason {
    /// For what the knob's declaration says that it removes.
    AsDeclared {
        /// The declaration's own words ([`Knob::removes`](crate::Knob::removes)).
        words: &'static str,
    },
    /// A run measured what the knob answers.
    Measured(Measured),
    /// So that other changes hold after the next boot.
    Lasting,
}

/// Why a knob that was asked for has no change in the plan. In JSON `because` is its stable name, beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum SkipReason {
    /// It is as wanted.
    AlreadySo {
        /// What there is.
        found: Option<Finding>,
    },
    /// It was to be left out.
    LeftOut,
    /// This machine does not have it, or it does not concern these CPUs.
    NotHere {
        /// Why.
        cause: KnobReason,
    },
    /// It cannot be read.
    Unreadable {
        /// Why.
        cause: KnobReason,
    },
    /// It is set at boot only.
    NeedsReboot {
        /// The boot parameters, each as it is typed.
        parameters: Vec<String>,
    },
    /// Nothing writes it: it is done by hand.
    ByHand {
        /// How, in the declaration's own words ([`Knob::by_hand`](crate::Knob::by_hand)).
        words: &'static str,
    },
    /// It must be named.
    Risk {
        /// What a run measured that it answers.
        measured: Measured,
        /// Its risk.
        risk: Risk,
    },
    /// What it answers took too little to matter.
    Negligible {
        /// How much.
        measured: Measured,
    },
    /// It was changed, but cannot be made to last.
    ForNow {
        /// The knob that does it from boot.
        at_boot: &'static str,
    },
}

impl SkipReason {
    /// Whether somebody who named the knob did not get it.
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
    fn who_named_a_knob_is_denied_it_but_where_it_is_so_already_or_he_left_it_out() {
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
