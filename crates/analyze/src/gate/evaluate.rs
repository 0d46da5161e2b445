//! Conditions against a run.

use super::condition::Condition;
use super::names::note;
use super::quantities::measure;
use super::reason::{GateNote, GateReason};
use super::value::GateValue;
use crate::RunSummary;
use serde::Serialize;

/// How a condition came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GateVerdict {
    /// It is not met.
    Kept,
    /// Whether it is met is not known.
    Undecided,
    /// It is met.
    Exceeded,
}

/// A condition and how it came out.
#[derive(Clone, Debug, PartialEq)]
pub struct GateResult {
    /// As it is written.
    pub condition: String,
    /// How it came out.
    pub verdict: GateVerdict,
    /// The value; none where it is not known.
    pub value: Option<GateValue>,
    /// Why it cannot be decided; none where it can.
    pub why: Option<GateReason>,
    /// What goes with a condition that is kept: that nobody was seen who has its name.
    pub note: Option<GateNote>,
}

impl GateResult {
    /// The worst of several.
    #[must_use]
    pub fn worst(results: &[GateResult]) -> GateVerdict {
        results
            .iter()
            .map(|result| result.verdict)
            .max()
            .unwrap_or(GateVerdict::Kept)
    }
}

/// Holds each condition against a run.
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
            let value = Some(limit.same_unit(measured.value));
            let holds = operator.holds(measured.value, limit.value());
            // What is missing can only add: a limit that is exceeded already stays exceeded.
            let certain_if_missing = holds == operator.holds(measured.at_most, limit.value());
            match measured.at_least {
                Some(doubt) if !certain_if_missing => undecided(value, doubt),
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
