//! Advice on the machine's settings, based on a run.

use super::scope::{culprits_of, of_interest};
use crate::output;
use crate::places::{program, program_as_root};
use crate::signals;
use jitterscope_analyze::RunSummary;
use jitterscope_model::CpuSet;
use jitterscope_platform::Machine;
use jitterscope_store::RunReader;
use jitterscope_tune::{Audit, Goal, Inspection, Plan, Select, audit_of, plan_of};
use jitterscope_view::report::Report;
use jitterscope_view::text::Step;
use jitterscope_view::tuning;

/// The audit, and the plan that follows from a run's evidence.
struct Advice {
    audit: Audit,
    plan: Plan,
    run: String,
    /// Measured CPUs that must do the machine's own work.
    left_out: Option<CpuSet>,
}

/// A report with advice at its end.
///
/// # Errors
/// The run cannot be read.
pub fn with_advice(
    mut report: Report,
    run: &RunReader,
    summary: &RunSummary,
) -> anyhow::Result<Report> {
    let path = run.path();
    if let Some(Advice {
        audit,
        plan,
        run,
        left_out,
    }) = advice(run, summary)?
    {
        report.line("");
        let (program, as_root) = (program(path), program_as_root(path));
        let run = tuning::NamedRun {
            id: &run,
            program: &program,
            as_root: &as_root,
        };
        report.lines(&tuning::advice(
            &audit,
            &plan,
            &run,
            left_out.as_ref(),
            output::style(),
        ));
    }
    Ok(report)
}

/// The command that shows the advised settings, and the gain of the first.
///
/// # Errors
/// The run cannot be read.
pub fn step(run: &RunReader, summary: &RunSummary) -> anyhow::Result<Option<Step>> {
    // The examination reads every thread of the machine.
    if signals::is_hurried() {
        return Ok(None);
    }
    let Some(Advice {
        audit,
        plan,
        run: id,
        left_out,
    }) = advice(run, summary)?
    else {
        return Ok(None);
    };
    let path = run.path();
    let (program, as_root) = (program(path), program_as_root(path));
    let run = tuning::NamedRun {
        id: &id,
        program: &program,
        as_root: &as_root,
    };
    Ok(tuning::first_step(&audit, &plan, &run, left_out.as_ref()))
}

/// `None` for a run of another machine, or one without culprits.
fn advice(run: &RunReader, summary: &RunSummary) -> anyhow::Result<Option<Advice>> {
    let machine = Machine::host();
    let here = machine
        .read_trimmed("/proc/sys/kernel/hostname")
        .unwrap_or_default();
    // Evidence that fails its own proof gives no advice.
    let doubted = !summary.trust.holds();
    if summary.attribution.is_none() || doubted || summary.run.hostname != here {
        return Ok(None);
    }
    let cpus = &of_interest(run.manifest());
    // A goal that the plan refuses gives no advice: a run of all CPUs leaves none for the machine's own work.
    let Some(goal) = Goal::for_advice(&machine, cpus) else {
        return Ok(None);
    };
    let left_out = Some(cpus.difference(&goal.isolated)).filter(|cpus| !cpus.is_empty());
    let measured = culprits_of(run)?;
    // One examination for both, because the machine may have very many threads.
    let inspection = Inspection::new(&machine, &goal);
    let audit = audit_of(&inspection, Some(&measured));
    let plan = plan_of(&inspection, &Select::RunCulprits(measured), &[], false)?;
    Ok(Some(Advice {
        audit,
        plan,
        run: run.manifest().id.to_string(),
        left_out,
    }))
}
