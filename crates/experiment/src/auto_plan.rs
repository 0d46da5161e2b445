//! What an experiment with all that is advised would do, before anything is touched.

use crate::NotTried;
use jitterscope_model::{AnyVersion, Nanos};
use serde::Serialize;

/// What would be tried, and in which steps.
#[derive(Clone, Debug, PartialEq)]
pub struct AutoPlan {
    /// Version of this structure in JSON.
    pub schema_version: u32,
    /// The run by which knobs are chosen; null where none is stored, and these are all that could be.
    pub ranked_by: Option<String>,
    /// What would be tried.
    pub candidates: Vec<Candidate>,
    /// What only a reboot can try.
    pub needs_reboot: Vec<&'static str>,
    /// What would not be tried, and why.
    pub not_tried: Vec<(String, AnyVersion<NotTried>)>,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// How long they take, until the first look and until the last.
    pub takes_ns: [Nanos; 2],
    /// What they may take.
    pub budget_ns: Nanos,
    /// Whether they fit until the first look.
    pub fits_budget: bool,
}

/// A knob that would be tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// Its id.
    pub knob: String,
    /// How long its undoing takes at most.
    pub undone_within_ns: Nanos,
}

/// Some runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which.
    pub what: StepRuns,
    /// How many, until the first look and until the last.
    pub runs: [usize; 2],
    /// How long they take, with what is waited for.
    pub takes_ns: [Nanos; 2],
}

/// Which runs a step makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepRuns {
    /// Without any of the candidates.
    Without,
    /// With all of them.
    With,
    /// Pairs of all that is kept against none.
    Pairs,
}
