//! Which of several knobs, all applied at once, did what they declare.

use crate::ExperimentError;
use jitterscope_analyze::compare::{
    ComparedRun, CulpritDiff, Design, DiffRules, Side, Verdict, diff,
};
use jitterscope_model::Subject;
use schemars::JsonSchema;
use serde::Serialize;

/// The result of a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Screened {
    pub knob: String,
    /// Whether a culprit that it declares fell beyond chance.
    pub kept: bool,
    /// Parts of stalls a second of everything that it declares, without the candidates and with all of them.
    pub events_per_sec: [f64; 2],
    /// Why it is not kept; null if it is.
    pub cause: Option<NotKept>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotKept {
    /// None of the culprits that it answers occurred.
    NothingThere,
    /// The culprits that it answers increased.
    More,
    /// The culprits that it answers did not fall beyond chance.
    NotBeyondChance,
}

/// Judges each knob by the culprits that it declares, from runs without any of the knobs and runs with all. These runs
/// select the kept knobs; measuring their effect takes new runs.
///
/// # Errors
/// One of the two has no run.
pub fn screen(
    without: &[ComparedRun],
    with: &[ComparedRun],
    knobs: &[String],
    margin: f64,
    answers: &dyn Fn(&str, &Subject) -> bool,
) -> Result<Vec<Screened>, ExperimentError> {
    let side = |name: &str, runs: &[ComparedRun]| {
        Side::of_arm(name, runs.to_vec()).map_err(|error| ExperimentError::Run {
            arm: 'A',
            why: error.to_string(),
        })
    };
    let sides = [side("without", without)?, side("with", with)?];
    let rules = DiffRules {
        // A choice of candidates, which fresh pairs confirm: what drifted meanwhile misleads the choice alone.
        design: Some(Design::Unpaired),
        margin,
        ..DiffRules::default()
    };
    let found = diff(&sides, rules, knobs, answers);
    let rows: &[CulpritDiff] = found
        .against
        .first()
        .and_then(|against| against.culprits.as_deref())
        .unwrap_or_default();
    Ok(knobs
        .iter()
        .map(|knob| {
            let own: Vec<&CulpritDiff> = rows
                .iter()
                .filter(|row| answers(knob, &row.subject))
                .collect();
            let sum = |of: fn(&CulpritDiff) -> Option<f64>| {
                own.iter().filter_map(|row| of(row)).sum::<f64>()
            };
            let verdicts = || own.iter().map(|row| row.verdict);
            let kept = verdicts().any(|v| v == Verdict::Better)
                && !verdicts().any(|v| v == Verdict::Worse);
            let cause = match (kept, own.is_empty()) {
                (true, _) => None,
                (false, true) => Some(NotKept::NothingThere),
                (false, false) if verdicts().any(|v| v == Verdict::Worse) => Some(NotKept::More),
                (false, false) => Some(NotKept::NotBeyondChance),
            };
            let events_per_sec = [sum(|row| row.events.first), sum(|row| row.events.second)];
            Screened {
                knob: knob.clone(),
                kept,
                events_per_sec,
                cause,
            }
        })
        .collect())
}
