//! JSON of experiments for programs: the data as it is, and what it says in words beside it.

use super::Sifted;
use super::reasons::{left_out, not_kept, not_tried, step_runs};
use crate::compare::diff_json;
use jitterscope_experiment::{AutoPlan, NotTried, Outcome};
use jitterscope_model::{AnyVersion, SCHEMA_VERSION};
use serde_json::{Error, Value, json};

/// What an experiment came to, with what was left out in words as `left_out`; null where nothing was.
///
/// # Errors
/// None that an outcome can cause.
pub fn outcome_json(of: &Outcome) -> Result<Value, Error> {
    let mut value = serde_json::to_value(of)?;
    value["left_out"] = left_out(of.left_out_runs).into();
    value["diff"] = serde_json::to_value(of.diff.as_ref().map(diff_json))?;
    Ok(value)
}

/// What `--auto` came to. Each candidate that is not kept has its `why` in words beside its data; of what was not
/// tried there are words alone.
///
/// # Errors
/// None that it can cause.
pub fn sifted_json(of: &Sifted<'_>) -> Result<Value, Error> {
    let mut candidates = serde_json::to_value(of.candidates)?;
    for (shown, candidate) in candidates.as_array_mut().into_iter().flatten().zip(of.candidates) {
        shown["why"] = candidate.cause.map(not_kept).into();
    }
    Ok(json!({
        "schema_version": SCHEMA_VERSION,
        "candidates": candidates,
        "needs_reboot": of.needs_reboot,
        "not_tried": words(of.not_tried),
        "confirmed": of.confirmed.map(outcome_json).transpose()?,
        "unfinished": of.unfinished,
    }))
}

/// What `--auto` would do. Of what would not be tried, and of which runs a step makes, there are words alone.
///
/// # Errors
/// None that a plan can cause.
pub fn auto_plan_json(of: &AutoPlan) -> Result<Value, Error> {
    let mut value = serde_json::to_value(of)?;
    value["not_tried"] = json!(words(&of.not_tried));
    for (shown, step) in value["steps"].as_array_mut().into_iter().flatten().zip(&of.steps) {
        shown["what"] = step_runs(step.what).into();
    }
    Ok(value)
}

/// Each knob that is not tried, and why.
fn words(all: &[(String, AnyVersion<NotTried>)]) -> Vec<(&str, String)> {
    all.iter().map(|(knob, why)| (knob.as_str(), not_tried(knob, why))).collect()
}
