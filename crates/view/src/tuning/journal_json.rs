//! JSON of applied, active and undone changes, for programs: the data, and words beside it.

use super::plan_reasons::{lasts_because, no_time};
use super::refusals::{forbidden, gone, not_undone, refusal, refused_with};
use crate::json::{PerhapsWhy, Why, Worded};
use jitterscope_tune::{
    Applied, ApplyReport, InForceBy, Lasts, NowIs, Outcome, RollbackReport, RolledBack, Settling,
    Status, StatusEntry, Undoing,
};
use schemars::JsonSchema;
use serde::Serialize;

// A change with its words, and when it is in force.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Timed{T}")]
struct Timed<'a, T> {
    #[serde(flatten)]
    change: Worded<'a, T, PerhapsWhy>,
    /// When it is in force, which may be later than it reads back; null if nothing was written or the time is not known.
    in_force_by: Option<Worded<'a, InForceBy, PerhapsWhy>>,
}

fn timed<'a, T>(change: &'a T, why: Option<String>, by: Option<&'a InForceBy>) -> Timed<'a, T> {
    Timed {
        change: Worded::perhaps(change, why),
        in_force_by: by.map(in_force),
    }
}

fn in_force(by: &InForceBy) -> Worded<'_, InForceBy, PerhapsWhy> {
    let why = match by {
        InForceBy::Unknown { cause } => Some(no_time(cause)),
        InForceBy::Now
        | InForceBy::AtLatest { .. }
        | InForceBy::AtEvent { .. }
        | InForceBy::AfterReboot => None,
    };
    Worded::perhaps(by, why)
}

/// The outcome of an apply. Each change that was not made has its `why` in words beside its data.
#[must_use]
pub fn apply_json(of: &ApplyReport) -> impl Serialize + JsonSchema {
    ApplyWithWords {
        report: of,
        applied: of.applied.iter().map(applied).collect(),
    }
}

#[derive(Serialize, JsonSchema)]
struct ApplyWithWords<'a> {
    #[serde(flatten)]
    report: &'a ApplyReport,
    /// The attempted changes, in order.
    applied: Vec<Timed<'a, Applied>>,
}

fn applied(of: &Applied) -> Timed<'_, Applied> {
    let why = match &of.outcome {
        Outcome::Refused { .. } | Outcome::Forbidden { .. } | Outcome::Gone { .. } => {
            Some(refusal(&of.outcome))
        }
        Outcome::Applied { .. } | Outcome::Pending { .. } | Outcome::Ignored { .. } => None,
    };
    timed(of, why, of.in_force_by.as_ref())
}

/// The active changes. Each one that was refused, is gone or belongs to no knob has its `why` in words beside its data.
#[must_use]
pub fn status_json(of: &Status) -> StatusWithWords<'_> {
    let settling = of.settling.iter();
    StatusWithWords {
        status: of,
        changes: of.changes.iter().map(standing).collect(),
        settling: settling
            .map(|of| timed(of, None, Some(&of.in_force_by)))
            .collect(),
    }
}

#[derive(Serialize, JsonSchema)]
pub struct StatusWithWords<'a> {
    #[serde(flatten)]
    status: &'a Status,
    changes: Vec<Timed<'a, StatusEntry>>,
    /// Changes rolled back in this boot that take some time to be in force, if that time is limited.
    settling: Vec<Timed<'a, Settling>>,
}

fn standing(of: &StatusEntry) -> Timed<'_, StatusEntry> {
    let why = match &of.standing {
        NowIs::Refused { why, means } => Some(refused_with(why, *means)),
        NowIs::Gone { cause } => Some(gone(cause)),
        NowIs::Forbidden { cause } => Some(forbidden(cause)),
        NowIs::InForce
        | NowIs::Pending { .. }
        | NowIs::Original
        | NowIs::ChangedAgain
        | NowIs::Drifted { .. }
        | NowIs::UndoneByReboot => None,
    };
    timed(of, why, of.in_force_by.as_ref())
}

/// A rollback. Each step that failed, was not tried or had nothing to undo, and each remaining drop-in, has its `why`
/// in words beside its data.
#[must_use]
pub fn rollback_json(of: &RollbackReport) -> impl Serialize + JsonSchema {
    let lasting = of.lasting.iter();
    RollbackWithWords {
        report: of,
        steps: of.steps.iter().map(step).collect(),
        lasting: lasting
            .map(|of| Worded::why(of, lasts_because(&of.cause)))
            .collect(),
    }
}

#[derive(Serialize, JsonSchema)]
struct RollbackWithWords<'a> {
    #[serde(flatten)]
    report: &'a RollbackReport,
    steps: Vec<Timed<'a, RolledBack>>,
    /// Drop-ins of ours that still restore a change at the next boot, and why.
    lasting: Vec<Worded<'a, Lasts, Why>>,
}

fn step(of: &RolledBack) -> Timed<'_, RolledBack> {
    let why = match &of.undoing {
        Undoing::Failed { .. } | Undoing::Gone { .. } | Undoing::Forbidden { .. } => {
            Some(not_undone(&of.undoing))
        }
        Undoing::Restored
        | Undoing::WasOriginal
        | Undoing::GoesWithItsCgroup
        | Undoing::UndoneByReboot
        | Undoing::KeptForeign { .. }
        | Undoing::Drifted { .. } => None,
    };
    timed(of, why, of.in_force_by.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_tune::{Forbidden, Meaning, Refusal, ValueFlaw};

    fn text(of: &impl Serialize) -> String {
        serde_json::to_string(of).unwrap()
    }

    #[test]
    fn an_outcome_has_one_why_which_is_words() {
        let refused = Outcome::Refused {
            class: Refusal::Busy,
            why: "busy (os error 16)".into(),
            means: Some(Meaning::InUse),
        };
        let change = |outcome| Applied {
            knob: "k",
            path: "/p".into(),
            from: "0".into(),
            to: "1".into(),
            outcome,
            in_force_by: None,
        };
        assert_eq!(
            text(&applied(&change(refused))),
            r#"{"knob":"k","path":"/p","from":"0","to":"1","outcome":"refused","class":"busy","system":"busy (os error 16)","means":"in_use","why":"busy (os error 16): in use by another program","in_force_by":null}"#
        );
        let flaw = ValueFlaw::TooLong;
        let forbidden = Outcome::Forbidden {
            cause: Forbidden::Value { flaw }.into(),
        };
        assert_eq!(
            text(&applied(&change(forbidden))),
            r#"{"knob":"k","path":"/p","from":"0","to":"1","outcome":"forbidden","cause":{"id":"value","flaw":"too_long"},"why":"it is too long: jitterscope never writes such a value","in_force_by":null}"#
        );
        let failed = Undoing::Failed {
            why: "busy".into(),
            means: Meaning::InUse,
        };
        let step = RolledBack {
            knob: "k".into(),
            path: "/p".into(),
            original: "1".into(),
            undoing: failed,
            in_force_by: None,
        };
        assert_eq!(
            text(&super::step(&step)),
            r#"{"knob":"k","path":"/p","original":"1","result":"failed","system":"busy","means":"in_use","why":"busy: in use by another program","in_force_by":null}"#
        );
    }
}
