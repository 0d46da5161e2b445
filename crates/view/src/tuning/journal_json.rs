//! JSON of applied, active and undone changes, for programs: the data, and words beside it.

use super::plan_reasons::{lasts_because, no_time};
use super::refusals::{forbidden, gone, not_undone, refusal, refused_with};
use crate::json::{Worded, worded};
use jitterscope_model::AnyVersion;
use jitterscope_tune::{
    Applied, ApplyReport, Forbidden, GoneBecause, InForceBy, Lasts, Meaning, NowIs, Outcome,
    Refusal, RollbackReport, RolledBack, Settling, Status, StatusEntry, Undoing,
};
use serde::Serialize;

/// The outcome of an apply. Each change that was not made has its `why` in words beside its data.
#[must_use]
pub fn apply_json(of: &ApplyReport) -> impl Serialize {
    ApplyJson {
        report: of,
        applied: of.applied.iter().map(AppliedJson::of).collect(),
    }
}

#[derive(Serialize)]
struct ApplyJson<'a> {
    #[serde(flatten)]
    report: &'a ApplyReport,
    applied: Vec<AppliedJson<'a>>,
}

#[derive(Serialize)]
struct AppliedJson<'a> {
    knob: &'a str,
    path: &'a str,
    from: &'a str,
    to: &'a str,
    #[serde(flatten)]
    outcome: OutcomeJson<'a>,
    in_force_by: Option<Worded<'a, InForceBy>>,
}

impl AppliedJson<'_> {
    fn of(of: &Applied) -> AppliedJson<'_> {
        AppliedJson {
            knob: of.knob,
            path: &of.path,
            from: &of.from,
            to: &of.to,
            outcome: OutcomeJson::of(&of.outcome),
            in_force_by: of.in_force_by.as_ref().map(in_force),
        }
    }
}

/// An outcome as in the journal, with `why` in words. A forbidden change counts as refused.
#[derive(Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
enum OutcomeJson<'a> {
    Applied {
        reads: &'a str,
    },
    Pending {
        effective: &'a str,
    },
    Ignored {
        reads: &'a str,
    },
    Refused {
        class: Refusal,
        why: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        means: Option<Meaning>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cause: Option<&'a AnyVersion<Forbidden>>,
    },
    Gone {
        cause: &'a AnyVersion<GoneBecause>,
        why: String,
    },
}

impl OutcomeJson<'_> {
    fn of(of: &Outcome) -> OutcomeJson<'_> {
        let why = refusal(of);
        match of {
            Outcome::Applied { reads } => OutcomeJson::Applied { reads },
            Outcome::Pending { effective } => OutcomeJson::Pending { effective },
            Outcome::Ignored { reads } => OutcomeJson::Ignored { reads },
            Outcome::Refused { class, means, .. } => OutcomeJson::Refused {
                class: *class,
                why,
                means: *means,
                cause: None,
            },
            Outcome::Forbidden { cause } => OutcomeJson::Refused {
                class: Refusal::NotPermitted,
                why,
                means: None,
                cause: Some(cause),
            },
            Outcome::Gone { cause } => OutcomeJson::Gone { cause, why },
        }
    }
}

fn in_force(by: &InForceBy) -> Worded<'_, InForceBy> {
    let why = match by {
        InForceBy::Unknown { cause } => Some(no_time(cause)),
        InForceBy::Now
        | InForceBy::AtLatest { .. }
        | InForceBy::AtEvent { .. }
        | InForceBy::AfterReboot => None,
    };
    worded(by, why.map(|why| ("why", why)))
}

/// A change with its words, and when it is in force.
#[derive(Serialize)]
struct TimedJson<'a, T> {
    #[serde(flatten)]
    change: Worded<'a, T>,
    in_force_by: Option<Worded<'a, InForceBy>>,
}

fn timed<'a, T>(change: &'a T, why: Option<String>, by: Option<&'a InForceBy>) -> TimedJson<'a, T> {
    TimedJson {
        change: worded(change, why.map(|why| ("why", why))),
        in_force_by: by.map(in_force),
    }
}

/// The active changes. Each one that was refused, is gone or belongs to no knob has its `why` in words beside its data.
#[must_use]
pub fn status_json(of: &Status) -> impl Serialize {
    let settling = of.settling.iter();
    StatusJson {
        status: of,
        changes: of.changes.iter().map(standing).collect(),
        settling: settling
            .map(|of| timed(of, None, Some(&of.in_force_by)))
            .collect(),
    }
}

#[derive(Serialize)]
struct StatusJson<'a> {
    #[serde(flatten)]
    status: &'a Status,
    changes: Vec<TimedJson<'a, StatusEntry>>,
    settling: Vec<TimedJson<'a, Settling>>,
}

fn standing(of: &StatusEntry) -> TimedJson<'_, StatusEntry> {
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
pub fn rollback_json(of: &RollbackReport) -> impl Serialize {
    let lasting = of.lasting.iter();
    RollbackJson {
        report: of,
        steps: of.steps.iter().map(step).collect(),
        lasting: lasting
            .map(|of| worded(of, [("why", lasts_because(&of.cause))]))
            .collect(),
    }
}

#[derive(Serialize)]
struct RollbackJson<'a> {
    #[serde(flatten)]
    report: &'a RollbackReport,
    steps: Vec<TimedJson<'a, RolledBack>>,
    lasting: Vec<Worded<'a, Lasts>>,
}

fn step(of: &RolledBack) -> TimedJson<'_, RolledBack> {
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
    use jitterscope_tune::ValueFlaw;

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
        assert_eq!(
            text(&OutcomeJson::of(&refused)),
            r#"{"outcome":"refused","class":"busy","why":"busy (os error 16): in use by another program","means":"in_use"}"#
        );
        let flaw = ValueFlaw::TooLong;
        assert_eq!(
            text(&OutcomeJson::of(&Outcome::Forbidden {
                cause: Forbidden::Value { flaw }.into()
            })),
            r#"{"outcome":"refused","class":"not_permitted","why":"it is too long: jitterscope never writes such a value","cause":{"id":"value","flaw":"too_long"}}"#
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
