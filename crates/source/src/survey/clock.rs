//! The clock as a source of evidence, before all others.

use super::survey;
use jitterscope_model::{ClockKind, SourceReport, SourceStatus};
use jitterscope_platform::{Machine, choose_clock};
use std::time::Duration;

/// Every source of evidence, the clock first.
#[must_use]
pub fn sources(machine: &Machine) -> Vec<SourceReport> {
    let (clock, kind) = clock_report(machine);
    let mut sources = vec![clock];
    sources.extend(survey(machine, kind));
    sources
}

fn clock_report(machine: &Machine) -> (SourceReport, ClockKind) {
    let report = |status, reason: String, loses: &str, fix: &str| SourceReport {
        name: "tsc".into(),
        status,
        reason,
        loses: loses.into(),
        fix: fix.into(),
        lost: 0,
    };
    match choose_clock(machine, None, Duration::from_millis(20)) {
        Ok(choice) => match choice.fallback_reason {
            None => (report(SourceStatus::Available, String::new(), "", ""), ClockKind::Tsc),
            Some(reason) => (
                report(
                    SourceStatus::Absent,
                    reason,
                    "the lowest floor: CLOCK_MONOTONIC_RAW is read instead",
                    "boot with clocksource=tsc tsc=reliable where the hardware is sound",
                ),
                ClockKind::MonotonicRaw,
            ),
        },
        Err(error) => {
            (report(SourceStatus::Absent, error.to_string(), "any measurement", ""), ClockKind::MonotonicRaw)
        }
    }
}
