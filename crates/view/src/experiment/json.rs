//! JSON of experiments for programs: the data, and words beside it.

use super::Sifted;
use super::reasons::{left_out, not_kept, not_tried, step_runs};
use crate::compare::diff_json;
use jitterscope_experiment::{AutoPlan, Candidate, NotTried, Outcome, Screened, Step};
use jitterscope_model::{AnyVersion, Nanos, SCHEMA_VERSION};
use serde::Serialize;

/// The outcome of an experiment, with excluded runs in words as `left_out`; null if there are none.
#[must_use]
pub fn outcome_json(of: &Outcome) -> impl Serialize {
    OutcomeJson {
        of,
        diff: of.diff.as_ref().map(diff_json),
        left_out: left_out(of.left_out_runs),
    }
}

#[derive(Serialize)]
struct OutcomeJson<'a, D> {
    #[serde(flatten)]
    of: &'a Outcome,
    diff: Option<D>,
    left_out: Option<String>,
}

/// The outcome of `--auto`. Each rejected candidate has its `why` in words beside its data; knobs that were not tried
/// have only words.
#[must_use]
pub fn sifted_json(of: &Sifted<'_>) -> impl Serialize {
    let Sifted {
        candidates,
        needs_reboot,
        not_tried,
        confirmed,
        unfinished,
    } = of;
    SiftedJson {
        schema_version: SCHEMA_VERSION,
        candidates: candidates
            .iter()
            .map(|of| ScreenedJson {
                of,
                why: of.cause.map(not_kept),
            })
            .collect(),
        needs_reboot,
        not_tried: words(not_tried),
        confirmed: confirmed.map(outcome_json),
        unfinished: *unfinished,
    }
}

#[derive(Serialize)]
struct SiftedJson<'a, O> {
    schema_version: u32,
    candidates: Vec<ScreenedJson<'a>>,
    needs_reboot: &'a [String],
    not_tried: Vec<(&'a str, String)>,
    confirmed: Option<O>,
    unfinished: Option<&'a str>,
}

#[derive(Serialize)]
struct ScreenedJson<'a> {
    #[serde(flatten)]
    of: &'a Screened,
    why: Option<&'static str>,
}

/// The plan of `--auto`. Knobs that are not tried, and the runs of a step, have only words.
#[must_use]
pub fn auto_plan_json(of: &AutoPlan) -> impl Serialize {
    let AutoPlan {
        schema_version,
        ranked_by,
        candidates,
        needs_reboot,
        not_tried,
        steps,
        takes_ns,
        budget_ns,
        fits_budget,
    } = of;
    AutoPlanJson {
        schema_version: *schema_version,
        ranked_by: ranked_by.as_deref(),
        candidates,
        needs_reboot,
        not_tried: words(not_tried),
        steps: steps.iter().map(StepJson::of).collect(),
        takes_ns: *takes_ns,
        budget_ns: *budget_ns,
        fits_budget: *fits_budget,
    }
}

#[derive(Serialize)]
struct AutoPlanJson<'a> {
    schema_version: u32,
    ranked_by: Option<&'a str>,
    candidates: &'a [Candidate],
    needs_reboot: &'a [&'static str],
    not_tried: Vec<(&'a str, String)>,
    steps: Vec<StepJson>,
    takes_ns: [Nanos; 2],
    budget_ns: Nanos,
    fits_budget: bool,
}

#[derive(Serialize)]
struct StepJson {
    what: &'static str,
    runs: [usize; 2],
    takes_ns: [Nanos; 2],
}

impl StepJson {
    fn of(of: &Step) -> StepJson {
        let Step {
            what,
            runs,
            takes_ns,
        } = of;
        StepJson {
            what: step_runs(*what),
            runs: *runs,
            takes_ns: *takes_ns,
        }
    }
}

/// Each knob that is not tried, with the reason.
fn words(all: &[(String, AnyVersion<NotTried>)]) -> Vec<(&str, String)> {
    all.iter()
        .map(|(knob, why)| (knob.as_str(), not_tried(knob, why)))
        .collect()
}
