//! JSON of audit and tune for programs: the data as it is, and what it says in words beside it.

use super::competitors::does;
use super::findings::{finding, wanted};
use super::plan_reasons::{
    boot_by_hand, change_reason, knob_notice, lasts_because, left_thread, left_threads, no_time, notice,
    skip_reason, stays,
};
use super::reasons::knob_reason;
use super::refusals::{forbidden, gone, not_undone, refusal, refused_with};
use jitterscope_tune::{
    ApplyReport, Audit, AuditEntry, Competitor, InForceBy, KnobState, NowIs, Outcome, Plan, RollbackReport,
    Status, Undoing,
};
use serde_json::{Error, Value};

/// An audit. Each knob has its `reason`, `current`, `wanted` and `note` in words beside their data, and each thread
/// that stays its `what` and `why`.
///
/// # Errors
/// None that an audit can cause.
pub fn audit_json(audit: &Audit) -> Result<Value, Error> {
    let mut value = serde_json::to_value(audit)?;
    for (shown, knob) in rows(&mut value["knobs"]).zip(&audit.knobs) {
        put_knob(shown, knob);
    }
    put_competitors(&mut value["competitors"], &audit.competitors);
    Ok(value)
}

fn put_competitors(shown: &mut Value, all: &[Competitor]) {
    for (shown, competitor) in rows(shown).zip(all) {
        shown["why"] = does(competitor.does).into();
    }
}

fn put_knob(shown: &mut Value, knob: &AuditEntry) {
    if let KnobState::Unavailable(why) | KnobState::NotApplicable(why) | KnobState::Unreadable(why) =
        &knob.state
    {
        shown["reason"] = knob_reason(why).into();
    }
    shown["current"] = knob.found.as_ref().map(finding).unwrap_or_default().into();
    shown["wanted"] = knob.wanted.as_ref().map(wanted).unwrap_or_default().into();
    shown["note"] = knob.notice.as_ref().map(notice).unwrap_or_default().into();
    for (shown, left) in rows(&mut shown["left"]).zip(&knob.left) {
        shown["what"] = left_thread(left).into();
        shown["why"] = stays(left.because).into();
    }
}

/// A plan. Each change and each knob without one has its `why` in words beside its data, what stays its `what` and
/// `why`, and the boot line `how` it gets there; `notes` are words alone.
///
/// # Errors
/// None that a plan can cause.
pub fn plan_json(plan: &Plan) -> Result<Value, Error> {
    let mut value = serde_json::to_value(plan)?;
    for (shown, change) in rows(&mut value["changes"]).zip(&plan.changes) {
        shown["why"] = change_reason(&change.why).into();
    }
    for (shown, skipped) in rows(&mut value["skipped"]).zip(&plan.skipped) {
        shown["why"] = skip_reason(&skipped.why).into();
    }
    for (shown, left) in rows(&mut value["left"]).zip(&plan.left) {
        shown["what"] = left_threads(left).into();
        shown["why"] = stays(left.because).into();
    }
    if let Some(line) = &plan.boot {
        value["boot"]["how"] = boot_by_hand(&line.by_hand).into();
    }
    put_competitors(&mut value["competitors"], &plan.competitors);
    value["notes"] = plan.notes.iter().map(knob_notice).collect::<Vec<_>>().into();
    Ok(value)
}

/// How an apply ended. Each change that was not made has its `why` in words beside its data.
///
/// # Errors
/// None that an apply can cause.
pub fn apply_json(report: &ApplyReport) -> Result<Value, Error> {
    let mut value = serde_json::to_value(report)?;
    for (shown, applied) in rows(&mut value["applied"]).zip(&report.applied) {
        if let Outcome::Refused { .. } | Outcome::Gone { .. } | Outcome::Forbidden { .. } = applied.outcome {
            shown["why"] = refusal(&applied.outcome).into();
        }
        if let Outcome::Forbidden { .. } = applied.outcome {
            (shown["outcome"], shown["class"]) = ("refused".into(), "not_permitted".into());
        }
        put_in_force(shown, applied.in_force_by.as_ref());
    }
    Ok(value)
}

/// What is in force. Each change that was refused has its `why` in words beside its data.
///
/// # Errors
/// None that a status can cause.
pub fn status_json(status: &Status) -> Result<Value, Error> {
    let mut value = serde_json::to_value(status)?;
    for (shown, change) in rows(&mut value["changes"]).zip(&status.changes) {
        match &change.standing {
            NowIs::Refused { why, means } => shown["why"] = refused_with(why, *means).into(),
            NowIs::Gone { cause } => shown["why"] = gone(cause).into(),
            NowIs::Forbidden { cause } => shown["why"] = forbidden(cause).into(),
            _ => {}
        }
        put_in_force(shown, change.in_force_by.as_ref());
    }
    for (shown, settling) in rows(&mut value["settling"]).zip(&status.settling) {
        put_in_force(shown, Some(&settling.in_force_by));
    }
    Ok(value)
}

fn put_in_force(shown: &mut Value, by: Option<&InForceBy>) {
    if let Some(InForceBy::Unknown { cause }) = by {
        shown["in_force_by"]["why"] = no_time(cause).into();
    }
}

/// A rollback. Each step that failed, and each drop-in that was left, has its `why` in words beside its data.
///
/// # Errors
/// None that a rollback can cause.
pub fn rollback_json(report: &RollbackReport) -> Result<Value, Error> {
    let mut value = serde_json::to_value(report)?;
    for (shown, step) in rows(&mut value["steps"]).zip(&report.steps) {
        if let Undoing::Failed { .. } | Undoing::Gone { .. } | Undoing::Forbidden { .. } = step.undoing {
            shown["why"] = not_undone(&step.undoing).into();
        }
        put_in_force(shown, step.in_force_by.as_ref());
    }
    for (shown, lasts) in rows(&mut value["lasting"]).zip(&report.lasting) {
        shown["why"] = lasts_because(&lasts.cause).into();
    }
    Ok(value)
}

fn rows(of: &mut Value) -> impl Iterator<Item = &mut Value> {
    of.as_array_mut().into_iter().flatten()
}
