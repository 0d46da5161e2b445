//! Reports of an experiment: its estimate, its plan, its outcome.

mod auto;
mod estimate;
mod json;
mod outcome;
mod reasons;

pub use auto::{Sifted, auto_plan, sifted};
pub use estimate::estimate;
pub use json::{OutcomeWithWords, auto_plan_json, outcome_json, sifted_json};
pub use outcome::outcome;
pub use reasons::{difference, experiment_error, void_reason};

use crate::report::Report;
use jitterscope_model::Nanos;
use std::time::Duration;

/// A time in minutes.
fn minutes(time: Nanos) -> String {
    match time.0 / 1_000_000_000 {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

/// The steps that the user takes next; empty without any.
#[must_use]
pub fn next_steps(steps: &[String]) -> Report {
    let mut report = Report::default();
    if !steps.is_empty() {
        report.heading("Next");
    }
    for step in steps {
        report.sentence(None, step);
    }
    report
}

/// A remaining time, in minutes above two: seconds would only flicker.
#[must_use]
pub fn time_left(time: Duration) -> String {
    minutes(Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
}
