//! JSON of audit and tune for programs: the data as it is, and what it says in words beside it.

use super::competitors::does;
use super::findings::{finding, wanted};
use super::plan_reasons::{
    boot_by_hand, change_reason, knob_notice, lasts_because, left_thread, left_threads, no_time, notice,
    skip_reason, stays,
};
use super::reasons::knob_reason;
use super::refusals::{forbidden, gone, not_undone, refusal, refused_with};
use jitterscope_model::AnyVersion;
use jitterscope_tune::{
    Applied, ApplyReport, Audit, AuditEntry, BootLine, Change, ChangeReason, Competitor, Forbidden, Goal,
    GoneBecause, InForceBy, KnobState, Lasts, Left, LeftTogether, Meaning, NowIs, Op, Outcome, Plan, Refusal,
    Risk, RollbackReport, RolledBack, Settling, Skipped, Status, StatusApply, StatusEntry, Undoing,
};
use serde::Serialize;

/// An audit. Each knob has its `reason`, `current`, `wanted` and `note` in words beside their data, each thread that
/// stays its `what` and `why`, and each program that writes the same settings its `why`.
#[must_use]
pub fn audit_json(of: &Audit) -> impl Serialize {
    let Audit { schema_version, goal, run, knobs, competitors, unanswered } = of;
    AuditJson {
        schema_version: *schema_version,
        goal,
        run: run.as_deref(),
        knobs: knobs.iter().map(KnobJson::of).collect(),
        competitors: competitors.iter().map(CompetitorJson::of).collect(),
        unanswered,
    }
}

#[derive(Serialize)]
struct AuditJson<'a> {
    schema_version: u32,
    #[serde(flatten)]
    goal: &'a Goal,
    run: Option<&'a str>,
    knobs: Vec<KnobJson<'a>>,
    competitors: Vec<CompetitorJson<'a>>,
    unanswered: &'a [String],
}

#[derive(Serialize)]
struct KnobJson<'a> {
    #[serde(flatten)]
    knob: &'a AuditEntry,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    current: String,
    wanted: String,
    note: String,
    left: Vec<LeftJson<'a>>,
}

impl KnobJson<'_> {
    fn of(knob: &AuditEntry) -> KnobJson<'_> {
        let reason = match &knob.state {
            KnobState::Unavailable(why) | KnobState::NotApplicable(why) | KnobState::Unreadable(why) => {
                Some(knob_reason(why))
            }
            KnobState::Wrong | KnobState::Fine => None,
        };
        KnobJson {
            knob,
            reason,
            current: knob.found.as_ref().map(finding).unwrap_or_default(),
            wanted: knob.wanted.as_ref().map(wanted).unwrap_or_default(),
            note: knob.notice.as_ref().map(notice).unwrap_or_default(),
            left: knob.left.iter().map(LeftJson::of).collect(),
        }
    }
}

#[derive(Serialize)]
struct LeftJson<'a> {
    #[serde(flatten)]
    thread: &'a Left,
    what: String,
    why: &'static str,
}

impl LeftJson<'_> {
    fn of(thread: &Left) -> LeftJson<'_> {
        LeftJson { thread, what: left_thread(thread), why: stays(thread.because) }
    }
}

#[derive(Serialize)]
struct CompetitorJson<'a> {
    #[serde(flatten)]
    program: &'a Competitor,
    why: &'static str,
}

impl CompetitorJson<'_> {
    fn of(program: &Competitor) -> CompetitorJson<'_> {
        CompetitorJson { program, why: does(program.does) }
    }
}

/// A plan. Each change and each knob without one has its `why` in words beside its data, what stays its `what` and
/// `why`, each program that writes the same settings its `why`, and the boot line `how` it gets there; `notes` are
/// words alone.
#[must_use]
pub fn plan_json(of: &Plan) -> impl Serialize {
    let Plan { schema_version, goal, changes, skipped, left, boot, notes, competitors } = of;
    PlanJson {
        schema_version: *schema_version,
        goal,
        changes: changes.iter().map(ChangeJson::of).collect(),
        skipped: skipped.iter().map(|knob| SkippedJson { knob, why: skip_reason(&knob.why) }).collect(),
        left: left.iter().map(LeftTogetherJson::of).collect(),
        boot: boot.as_ref().map(|line| BootJson { line, how: boot_by_hand(&line.by_hand) }),
        notes: notes.iter().map(knob_notice).collect(),
        competitors: competitors.iter().map(CompetitorJson::of).collect(),
    }
}

#[derive(Serialize)]
struct PlanJson<'a> {
    schema_version: u32,
    #[serde(flatten)]
    goal: &'a Goal,
    changes: Vec<ChangeJson<'a>>,
    skipped: Vec<SkippedJson<'a>>,
    left: Vec<LeftTogetherJson<'a>>,
    boot: Option<BootJson<'a>>,
    notes: Vec<String>,
    competitors: Vec<CompetitorJson<'a>>,
}

#[derive(Serialize)]
struct ChangeJson<'a> {
    knob: &'a str,
    path: String,
    from: String,
    to: String,
    content: Option<&'a str>,
    cause: &'a ChangeReason,
    why: String,
    risk: Risk,
}

impl ChangeJson<'_> {
    fn of(of: &Change) -> ChangeJson<'_> {
        let Change { knob, op, why, risk } = of;
        let content = match op {
            Op::PutFile { to, .. } => Some(to.as_str()),
            Op::Write { .. } | Op::MakeDir { .. } | Op::Thread { .. } | Op::Blink { .. } => None,
        };
        ChangeJson {
            knob,
            path: op.what(),
            from: op.from_text(),
            to: op.to_text(),
            content,
            cause: why,
            why: change_reason(why),
            risk: *risk,
        }
    }
}

#[derive(Serialize)]
struct SkippedJson<'a> {
    #[serde(flatten)]
    knob: &'a Skipped,
    why: String,
}

#[derive(Serialize)]
struct LeftTogetherJson<'a> {
    #[serde(flatten)]
    threads: &'a LeftTogether,
    what: String,
    why: &'static str,
}

impl LeftTogetherJson<'_> {
    fn of(threads: &LeftTogether) -> LeftTogetherJson<'_> {
        LeftTogetherJson { threads, what: left_threads(threads), why: stays(threads.because) }
    }
}

#[derive(Serialize)]
struct BootJson<'a> {
    #[serde(flatten)]
    line: &'a BootLine,
    how: String,
}

/// How an apply ended. Each change that was not made has its `why` in words beside its data.
#[must_use]
pub fn apply_json(of: &ApplyReport) -> impl Serialize {
    let ApplyReport { schema_version, applied, not_tried, merged } = of;
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
        let Applied { knob, path, from, to, outcome, in_force_by } = of;
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

/// An outcome as the journal has it, but with `why` in words. What may not be changed is refused.
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
            Outcome::Refused { class, means, .. } => {
                OutcomeJson::Refused { class: *class, why, means: *means, cause: None }
            }
            Outcome::Forbidden { cause } => {
                OutcomeJson::Refused { class: Refusal::NotPermitted, why, means: None, cause: Some(cause) }
            }
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

/// What is in force. Each change that was refused, is gone or is none of a knob has its `why` in words beside its data.
#[must_use]
pub fn status_json(of: &Status) -> impl Serialize {
    let Status { schema_version, active, applies, changes, rolled_back, settling } = of;
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
        let StatusEntry { knob, path, family: _, original, asked, since_realtime_ns, standing, in_force_by } =
            of;
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
        let Settling { knob, path, original, in_force_by } = of;
        SettlingJson { knob, path, original, in_force_by: InForceJson::of(in_force_by) }
    }
}

/// A rollback. Each step that failed, was not tried or had nothing to undo, and each drop-in that was left, has its
/// `why` in words beside its data.
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
        lasting: lasting.iter().map(|of| LastsJson { of, why: lasts_because(&of.cause) }).collect(),
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
        let RolledBack { knob, path, original, undoing, in_force_by } = of;
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
    fn the_version_stands_first_and_the_rest_as_it_is_declared() {
        let goal = Goal { isolated: "1".parse().unwrap(), housekeeping: "0".parse().unwrap() };
        let audit = Audit {
            schema_version: 1,
            goal,
            run: None,
            knobs: Vec::new(),
            competitors: Vec::new(),
            unanswered: Vec::new(),
        };
        assert_eq!(
            text(&audit_json(&audit)),
            r#"{"schema_version":1,"isolated":"1","housekeeping":"0","run":null,"knobs":[],"competitors":[],"unanswered":[]}"#
        );
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
            text(&OutcomeJson::of(&Outcome::Forbidden { cause: Forbidden::Value { flaw }.into() })),
            r#"{"outcome":"refused","class":"not_permitted","why":"it is too long: no such value is ever written","cause":{"id":"value","flaw":"too_long"}}"#
        );
        let failed = Undoing::Failed { why: "busy".into(), means: Meaning::InUse };
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
