//! Evaluates conditions on a run.

use super::condition::{Condition, Quantity};
use super::names::note;
use super::quantities::measure;
use super::reason::{GateNote, GateReason};
use super::value::GateValue;
use crate::RunSummary;
use schemars::JsonSchema;
use serde::Serialize;

/// The outcome of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateVerdict {
    /// The condition is not exceeded.
    Kept,
    Undecided,
    Exceeded,
}

/// A condition and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct GateResult {
    /// The condition in text form.
    pub condition: String,
    pub verdict: GateVerdict,
    /// The value; `None` if unknown.
    pub value: Option<GateValue>,
    /// Why the condition is undecided; `None` if it is decided.
    pub why: Option<GateReason>,
    /// A note on a kept condition: no culprit matches its name.
    pub note: Option<GateNote>,
}

impl GateResult {
    /// The worst of several outcomes.
    #[must_use]
    pub fn worst(results: &[GateResult]) -> GateVerdict {
        results
            .iter()
            .map(|result| result.verdict)
            .max()
            .unwrap_or(GateVerdict::Kept)
    }
}

/// Evaluates each condition on a run.
#[must_use]
pub fn evaluate(conditions: &[Condition], run: &RunSummary) -> Vec<GateResult> {
    conditions
        .iter()
        .map(|condition| one(condition, run))
        .collect()
}

fn one(condition: &Condition, run: &RunSummary) -> GateResult {
    let undecided = |value: Option<GateValue>, why: GateReason| GateResult {
        condition: condition.to_string(),
        verdict: GateVerdict::Undecided,
        value,
        why: Some(why),
        note: None,
    };
    let Some((operator, limit)) = condition.limit else {
        return undecided(None, GateReason::OnlyDiffCompares);
    };
    match measure(&condition.quantity, run) {
        Err(why) => undecided(None, why),
        Ok(measured) => {
            let value = Some(match (&condition.quantity, &run.worst_case) {
                (Quantity::Max, Some(worst)) => GateValue::Longest(worst.clone()),
                _ => limit.same_unit(measured.value),
            });
            let holds = operator.holds(measured.value, limit.value());
            let certain = [measured.at_least, measured.at_most]
                .into_iter()
                .all(|bound| operator.holds(bound, limit.value()) == holds);
            match measured.doubt {
                Some(doubt) if !certain => undecided(value, doubt),
                _ => GateResult {
                    condition: condition.to_string(),
                    verdict: if holds {
                        GateVerdict::Exceeded
                    } else {
                        GateVerdict::Kept
                    },
                    value,
                    why: None,
                    note: if holds { None } else { note(condition, run) },
                },
            }
        }
    }
}
