//! JSON of experiments for programs: the data, and words beside it.

use super::Sifted;
use super::reasons::{left_out, not_kept, not_tried, step_runs};
use crate::compare::DiffWithWords;
use crate::json::Worded;
use jitterscope_experiment::{AutoPlan, NotTried, Outcome, Screened, Step};
use jitterscope_model::{AnyVersion, SCHEMA_VERSION};
use schemars::JsonSchema;
use serde::Serialize;

/// The outcome of an experiment, with excluded runs in words as `left_out`; null if there are none.
#[must_use]
pub fn outcome_json(of: &Outcome) -> OutcomeWithWords<'_> {
    OutcomeWithWords {
        of,
        diff: of.diff.as_ref().map(DiffWithWords::of),
        left_out: left_out(of.left_out_runs),
    }
}

#[derive(Serialize, JsonSchema)]
pub struct OutcomeWithWords<'a> {
    #[serde(flatten)]
    of: &'a Outcome,
    /// The last comparison, with the rows of decided questions from the looks that decided them; null before the first
    /// look.
    diff: Option<DiffWithWords<'a>>,
    /// The excluded runs in words; null without any.
    left_out: Option<String>,
}

/// The outcome of `--auto`. Each rejected candidate has its `why` in words beside its data; knobs that were not tried
/// have only words.
#[must_use]
pub fn sifted_json<'a>(of: &'a Sifted<'a>) -> impl Serialize + JsonSchema {
    SiftedWithWords {
        schema_version: SCHEMA_VERSION,
        of,
        candidates: of.candidates.iter().map(screened).collect(),
        not_tried: words(of.not_tried),
        confirmed: of.confirmed.map(outcome_json),
    }
}

#[derive(Serialize, JsonSchema)]
struct SiftedWithWords<'a> {
    /// Version of this structure.
    schema_version: u32,
    #[serde(flatten)]
    of: &'a Sifted<'a>,
    /// The outcome of each candidate.
    candidates: Vec<Worded<'a, Screened, NotKeptWords>>,
    /// Knobs that were not tried, each with the reason in words.
    not_tried: Vec<(&'a str, String)>,
    /// The confirmation of the kept knobs with fresh pairs; null if it was not made.
    confirmed: Option<OutcomeWithWords<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct NotKeptWords {
    /// `cause` in words; null if it is kept.
    why: Option<&'static str>,
}

fn screened(fact: &Screened) -> Worded<'_, Screened, NotKeptWords> {
    let why = fact.cause.map(not_kept);
    Worded {
        fact,
        words: NotKeptWords { why },
    }
}

/// The plan of `--auto`. Knobs that are not tried, and the runs of a step, have only words.
#[must_use]
pub fn auto_plan_json(of: &AutoPlan) -> impl Serialize + JsonSchema {
    AutoPlanWithWords {
        plan: of,
        not_tried: words(&of.not_tried),
        steps: of.steps.iter().map(step).collect(),
    }
}

#[derive(Serialize, JsonSchema)]
struct AutoPlanWithWords<'a> {
    #[serde(flatten)]
    plan: &'a AutoPlan,
    /// Knobs that are not tried, each with the reason in words.
    not_tried: Vec<(&'a str, String)>,
    /// The steps, in order.
    steps: Vec<Worded<'a, Step, StepWords>>,
}

#[derive(Serialize, JsonSchema)]
struct StepWords {
    /// Its runs in words.
    what: &'static str,
}

fn step(fact: &Step) -> Worded<'_, Step, StepWords> {
    let what = step_runs(fact.what);
    Worded {
        fact,
        words: StepWords { what },
    }
}

/// Each knob that is not tried, with the reason.
fn words(all: &[(String, AnyVersion<NotTried>)]) -> Vec<(&str, String)> {
    all.iter()
        .map(|(knob, why)| (knob.as_str(), not_tried(knob, why)))
        .collect()
}
