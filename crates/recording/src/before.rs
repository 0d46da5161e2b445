//! Limits of a recording that are known before it begins.

use crate::housekeeping::HousekeepingAffinity;
use crate::kernel_events::NoEvents;
use crate::settings::RecordSettings;
use jitterscope_model::{CpuUse, NoKernelEvents, SourceLoss, SourceReport, SourceStatus, Warning};
use jitterscope_platform::{ClockChoice, Machine, Topology};
use jitterscope_source::problem_in_namespace;

pub(crate) fn warnings(
    machine: &Machine,
    settings: &RecordSettings,
    home: &HousekeepingAffinity,
) -> Vec<Warning> {
    let mut found = Vec::new();
    let measured = &settings.cpus.cpus;
    if home.helpers.is_empty() {
        found.push(Warning::NoFreeCpu {
            cpus: measured.clone(),
            taken: CpuUse::Measured,
        });
    }
    found.extend(
        settings
            .idle_control()
            .filter(|control| home.helpers.contains(*control))
            .map(|cpu| Warning::IdleControlShared { cpu }),
    );
    for cpu in measured.iter() {
        let siblings = Topology::siblings(machine, cpu).intersection(&home.helpers);
        // A helper thread that may also run elsewhere can still be scheduled on the sibling.
        if !siblings.is_empty() {
            found.push(Warning::SmtSibling { cpu, siblings });
        }
    }
    if settings.fifo_priority.is_some() {
        found.extend(throttling(machine));
    }
    found
}

/// Warnings about the chosen clock.
pub(crate) fn of_clock(clock: &ClockChoice) -> Option<Warning> {
    let doubt = clock.doubt.clone().map(|flaw| Warning::ClockDoubt {
        reason: flaw.into(),
    });
    doubt.or_else(|| {
        clock
            .fallback_reason
            .clone()
            .map(|flaw| Warning::ClockFallback {
                reason: flaw.into(),
            })
    })
}

/// A warning if real-time throttling is in force.
pub(crate) fn throttling(machine: &Machine) -> Option<Warning> {
    let number = |name: &str| -> Option<i64> {
        machine
            .read_trimmed(format!("/proc/sys/kernel/{name}"))
            .ok()?
            .parse()
            .ok()
    };
    let runtime_us = number("sched_rt_runtime_us")?;
    let period_us = number("sched_rt_period_us")?;
    (0..period_us)
        .contains(&runtime_us)
        .then_some(Warning::RtThrottling {
            runtime_us,
            period_us,
        })
}

/// Records that there are no kernel events, as a source report, and returns the warning.
pub(crate) fn blind(machine: &Machine, why: &NoEvents, sources: &mut Vec<SourceReport>) -> Warning {
    let problem = match why.status() {
        SourceStatus::Denied => problem_in_namespace(machine, why.problem()),
        _ => why.problem(),
    };
    sources.push(SourceReport::limited(
        "tracefs",
        why.status(),
        problem.clone(),
        SourceLoss::Causes,
    ));
    Warning::NoKernelEvents(NoKernelEvents {
        wanted: true,
        problem: Some(problem),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn throttling_is_reported_only_where_it_is_in_force() {
        let dir = tempfile::tempdir().unwrap();
        let kernel = dir.path().join("proc/sys/kernel");
        fs::create_dir_all(&kernel).unwrap();
        let machine = Machine::at(dir.path());
        fs::write(kernel.join("sched_rt_period_us"), "1000000\n").unwrap();
        for (runtime, warns) in [
            ("950000", true),
            ("-1", false),
            ("1000000", false),
            ("0", true),
        ] {
            fs::write(kernel.join("sched_rt_runtime_us"), runtime).unwrap();
            assert_eq!(throttling(&machine).is_some(), warns, "{runtime}");
        }
    }
}
