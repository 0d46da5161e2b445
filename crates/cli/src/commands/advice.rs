//! Which settings of this machine answer what a run measured.

use super::scope::{culprits_of, of_interest};
use crate::output;
use crate::places::{program, program_as_root};
use crate::signals;
use jitterscope_analyze::RunSummary;
use jitterscope_model::CpuSet;
use jitterscope_platform::Machine;
use jitterscope_store::RunReader;
use jitterscope_tune::{Audit, Goal, Inspection, Plan, Select, audit_of, plan_of};
use jitterscope_view::text::Step;
use jitterscope_view::tuning;

/// Settings named at the end of a report, at most.
const MOST: usize = 5;

/// What the audit says beside the plan that a run's evidence leads to.
struct Advice {
    audit: Audit,
    plan: Plan,
    run: String,
    /// Measured CPUs that must do the machine's own work.
    left_out: Option<CpuSet>,
}

/// A report with the settings that answer it at its end.
///
/// # Errors
/// The run cannot be read.
pub fn with_advice(
    mut text: String,
    run: &RunReader,
    summary: &RunSummary,
) -> anyhow::Result<String> {
    let path = run.path();
    if let Some(Advice {
        audit,
        plan,
        run,
        left_out,
    }) = advice(run, summary)?
    {
        text.push('\n');
        let (program, as_root) = (program(path), program_as_root(path));
        let run = tuning::NamedRun {
            id: &run,
            program: &program,
            as_root: &as_root,
        };
        text.push_str(&tuning::advice(
            &audit,
            &plan,
            &run,
            left_out.as_ref(),
            MOST,
            output::style(),
        ));
    }
    Ok(text)
}

/// The command that shows these settings, and what the first of them could win back.
///
/// # Errors
/// The run cannot be read.
pub fn step(run: &RunReader, summary: &RunSummary) -> anyhow::Result<Option<Step>> {
    // It looks at each thread of the machine.
    if signals::is_hurried() {
        return Ok(None);
    }
    let Some(Advice {
        audit,
        plan,
        run,
        left_out,
    }) = advice(run, summary)?
    else {
        return Ok(None);
    };
    Ok(tuning::first_step(&audit, &plan, &run, left_out.as_ref()))
}

/// Nothing for a run of another machine, or one without culprits.
fn advice(run: &RunReader, summary: &RunSummary) -> anyhow::Result<Option<Advice>> {
    let machine = Machine::host();
    let here = machine
        .read_trimmed("/proc/sys/kernel/hostname")
        .unwrap_or_default();
    // Evidence that fails its own proof advises nothing.
    let doubted = !summary.trust.doubts.is_empty();
    if summary.attribution.is_none() || doubted || summary.run.hostname != here {
        return Ok(None);
    }
    let cpus = &of_interest(run.manifest());
    // What a plan refuses is no advice: a run of all CPUs leaves nobody to do the machine's own work.
    let Some(goal) = Goal::for_advice(&machine, cpus) else {
        return Ok(None);
    };
    let left_out = Some(cpus.difference(&goal.isolated)).filter(|cpus| !cpus.is_empty());
    let measured = culprits_of(run)?;
    // One look at the machine for both: it may have very many threads.
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
