//! The clock as a source of evidence. It comes before the others.

use super::survey;
use jitterscope_model::{ClockKind, SourceLoss, SourceProblem, SourceReport, SourceStatus};
use jitterscope_platform::{Machine, choose_clock};
use std::time::Duration;

const NAME: &str = "tsc";

/// Every source of evidence, the clock first.
#[must_use]
pub fn sources(machine: &Machine) -> Vec<SourceReport> {
    let (clock, kind) = clock_report(machine);
    let mut sources = vec![clock];
    sources.extend(survey(machine, kind));
    sources
}

fn clock_report(machine: &Machine) -> (SourceReport, ClockKind) {
    let absent = |problem, loss| {
        let report = SourceReport::limited(NAME, SourceStatus::Absent, problem, loss);
        (report, ClockKind::MonotonicRaw)
    };
    match choose_clock(machine, None, Duration::from_millis(20)) {
        Ok(choice) => match choice.fallback_reason {
            None => (SourceReport::available(NAME), ClockKind::Tsc),
            Some(because) => absent(
                SourceProblem::NoTsc {
                    because: because.into(),
                },
                SourceLoss::LowestFloor,
            ),
        },
        Err(error) => absent(error.into(), SourceLoss::Measurement),
    }
}
