//! The plan of an experiment with all advised knobs, made before anything is changed.

use crate::NotTried;
use jitterscope_model::{AnyVersion, Nanos};
use schemars::JsonSchema;
use serde::Serialize;

/// The candidates and the steps.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AutoPlan {
    /// Version of this structure in JSON.
    pub schema_version: u32,
    /// The run by which the knobs of the steps are chosen; null if none is stored, and then the steps have all.
    pub ranked_by: Option<String>,
    /// All knobs that it may try, those that the run names a culprit for first.
    pub candidates: Vec<Candidate>,
    /// Knobs that only a reboot can try.
    pub needs_reboot: Vec<&'static str>,
    /// Knobs that are not tried, and why. In JSON, view adds them in words.
    #[serde(skip)]
    pub not_tried: Vec<(String, AnyVersion<NotTried>)>,
    /// The steps, in order. In JSON, view adds them with their words.
    #[serde(skip)]
    pub steps: Vec<Step>,
    /// How long the steps take, until the first look and until the last.
    pub takes_ns: [Nanos; 2],
    /// The limit of the time until the first look.
    pub budget_ns: Nanos,
    /// Whether they fit the limit until the first look.
    pub fits_budget: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Candidate {
    pub knob: String,
    /// Whether the steps have it: the run by which they are chosen names a culprit that it answers, or there is none.
    pub chosen: bool,
    /// Maximum time until its undoing is in force.
    pub undone_within_ns: Nanos,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Step {
    #[serde(skip)]
    pub what: StepRuns,
    /// How many runs, until the first look and until the last.
    pub runs: [usize; 2],
    /// How long they take, with all waits.
    pub takes_ns: [Nanos; 2],
}

/// The runs of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepRuns {
    /// Without any of the candidates.
    Without,
    With,
    /// Pairs: all kept candidates against none.
    Pairs,
}
