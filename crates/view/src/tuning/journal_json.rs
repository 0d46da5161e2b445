//! JSON of applied, active and undone changes, for programs: the data, and words beside it.

use super::plan_reasons::{lasts_because, no_time};
use super::refusals::{forbidden, gone, not_undone, refusal, refused_with};
use jitterscope_model::AnyVersion;
use jitterscope_tune::{
    Applied, ApplyReport, Forbidden, GoneBecause, InForceBy, Lasts, Meaning, NowIs, Outcome,
    Refusal, RollbackReport, RolledBack, Settling, Status, StatusApply, StatusEntry, Undoing,
};
use serde::Serialize;

/// The outcome of an apply. Each change that was not made has its `why` in words beside its data.
#[must_use]
pub fn apply_json(of: &ApplyReport) -> impl Serialize {
    let ApplyReport {
        schema_version,
        applied,
        not_tried,
        merged,
    } = of;
    ApplyJson {
        schema_version: *schema_version,
        applied: applied.iter().map(AppliedJson::of).collect(),
        not_tried: *not_tried,
        merged: *merged,
    }
}

#[derive(Serialize)]
struct ApplyJson<'a> {
    schema_version: u32,
    applied: Vec<AppliedJson<'a>>,
    not_tried: usize,
    merged: bool,
}

#[derive(Serialize)]
struct AppliedJson<'a> {
    knob: &'a str,
    path: &'a str,
    from: &'a str,
    to: &'a str,
    #[serde(flatten)]
    outcome: OutcomeJson<'a>,
    in_force_by: Option<InForceJson<'a>>,
}

impl AppliedJson<'_> {
    fn of(of: &Applied) -> AppliedJson<'_> {
        let Applied {
            knob,
            path,
            from,
            to,
            outcome,
            in_force_by,
        } = of;
        AppliedJson {
            knob,
            path,
            from,
            to,
            outcome: OutcomeJson::of(outcome),
            in_force_by: in_force_by.as_ref().map(InForceJson::of),
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

#[derive(Serialize)]
struct InForceJson<'a> {
    #[serde(flatten)]
    by: &'a InForceBy,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

impl InForceJson<'_> {
    fn of(by: &InForceBy) -> InForceJson<'_> {
        let why = match by {
            InForceBy::Unknown { cause } => Some(no_time(cause)),
            InForceBy::Now
            | InForceBy::AtLatest { .. }
            | InForceBy::AtEvent { .. }
            | InForceBy::AfterReboot => None,
        };
        InForceJson { by, why }
    }
}

/// The active changes. Each one that was refused, is gone or belongs to no knob has its `why` in words beside its data.
#[must_use]
pub fn status_json(of: &Status) -> impl Serialize {
    let Status {
        schema_version,
        active,
        applies,
        changes,
        rolled_back,
        settling,
    } = of;
    StatusJson {
        schema_version: *schema_version,
        active: *active,
        applies,
        changes: changes.iter().map(StandingJson::of).collect(),
        rolled_back,
        settling: settling.iter().map(SettlingJson::of).collect(),
    }
}

#[derive(Serialize)]
struct StatusJson<'a> {
    schema_version: u32,
    active: bool,
    applies: &'a [StatusApply],
    changes: Vec<StandingJson<'a>>,
    rolled_back: &'a [String],
    settling: Vec<SettlingJson<'a>>,
}

#[derive(Serialize)]
struct StandingJson<'a> {
    knob: &'a str,
    path: &'a str,
    original: &'a str,
    asked: &'a str,
    since_realtime_ns: u64,
    #[serde(flatten)]
    standing: &'a NowIs,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    in_force_by: Option<InForceJson<'a>>,
}

impl StandingJson<'_> {
    fn of(of: &StatusEntry) -> StandingJson<'_> {
        let StatusEntry {
            knob,
            path,
            family: _,
            original,
            asked,
            since_realtime_ns,
            standing,
            in_force_by,
        } = of;
        let why = match standing {
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
        StandingJson {
            knob,
            path,
            original,
            asked,
            since_realtime_ns: *since_realtime_ns,
            standing,
            why,
            in_force_by: in_force_by.as_ref().map(InForceJson::of),
        }
    }
}

#[derive(Serialize)]
struct SettlingJson<'a> {
    knob: &'a str,
    path: &'a str,
    original: &'a str,
    in_force_by: InForceJson<'a>,
}

impl SettlingJson<'_> {
    fn of(of: &Settling) -> SettlingJson<'_> {
        let Settling {
            knob,
            path,
            original,
            in_force_by,
        } = of;
        SettlingJson {
            knob,
            path,
            original,
            in_force_by: InForceJson::of(in_force_by),
        }
    }
}

/// A rollback. Each step that failed, was not tried or had nothing to undo, and each remaining drop-in, has its `why`
/// in words beside its data.
#[must_use]
pub fn rollback_json(of: &RollbackReport) -> impl Serialize {
    let RollbackReport {
        schema_version,
        steps,
        inherited_freed,
        rebooted,
        update_boot_loader,
        stays,
        lasting,
    } = of;
    RollbackJson {
        schema_version: *schema_version,
        steps: steps.iter().map(StepJson::of).collect(),
        inherited_freed: *inherited_freed,
        rebooted: *rebooted,
        update_boot_loader: *update_boot_loader,
        stays: *stays,
        lasting: lasting
            .iter()
            .map(|of| LastsJson {
                of,
                why: lasts_because(&of.cause),
            })
            .collect(),
    }
}

#[derive(Serialize)]
struct RollbackJson<'a> {
    schema_version: u32,
    steps: Vec<StepJson<'a>>,
    inherited_freed: usize,
    rebooted: bool,
    update_boot_loader: bool,
    stays: usize,
    lasting: Vec<LastsJson<'a>>,
}

#[derive(Serialize)]
struct StepJson<'a> {
    knob: &'a str,
    path: &'a str,
    original: &'a str,
    #[serde(flatten)]
    undoing: &'a Undoing,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    in_force_by: Option<InForceJson<'a>>,
}

impl StepJson<'_> {
    fn of(of: &RolledBack) -> StepJson<'_> {
        let RolledBack {
            knob,
            path,
            original,
            undoing,
            in_force_by,
        } = of;
        let why = match undoing {
            Undoing::Failed { .. } | Undoing::Gone { .. } | Undoing::Forbidden { .. } => {
                Some(not_undone(undoing))
            }
            Undoing::Restored
            | Undoing::WasOriginal
            | Undoing::GoesWithItsCgroup
            | Undoing::UndoneByReboot
            | Undoing::KeptForeign { .. }
            | Undoing::Drifted { .. } => None,
        };
        StepJson {
            knob,
            path,
            original,
            undoing,
            why,
            in_force_by: in_force_by.as_ref().map(InForceJson::of),
        }
    }
}

#[derive(Serialize)]
struct LastsJson<'a> {
    #[serde(flatten)]
    of: &'a Lasts,
    why: String,
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
            r#"{"outcome":"refused","class":"busy","why":"busy (os error 16): somebody else is using it","means":"in_use"}"#
        );
        let flaw = ValueFlaw::TooLong;
        assert_eq!(
            text(&OutcomeJson::of(&Outcome::Forbidden {
                cause: Forbidden::Value { flaw }.into()
            })),
            r#"{"outcome":"refused","class":"not_permitted","why":"it is too long: no such value is ever written","cause":{"id":"value","flaw":"too_long"}}"#
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
            text(&StepJson::of(&step)),
            r#"{"knob":"k","path":"/p","original":"1","result":"failed","system":"busy","means":"in_use","why":"busy: somebody else is using it","in_force_by":null}"#
        );
    }
}
