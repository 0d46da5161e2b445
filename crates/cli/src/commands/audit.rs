//! `audit`: the wrong knobs for these CPUs, most useful first; or the deviations from a declared state. It changes
//! nothing.

use super::audit_expect;
use super::scope::{Scope, measured_by};
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::places::Places;
use clap::Args;
use jitterscope_model::CpuList;
use jitterscope_tune::{Goal, GoalError, Inspection, audit, catalogue};
use jitterscope_view::{cpus_text, tuning};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Arguments of `audit`.
#[derive(Args, Debug)]
pub struct AuditArgs {
    #[command(flatten)]
    scope: Scope,
    /// Explain one knob: its effect, control, persistence, rollback and cost
    #[arg(long, value_name = "ID", conflicts_with_all = ["run", "json"])]
    explain: Option<String>,
    /// Also list in full the knobs that are fine or unavailable
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Check this machine against a declared state, a file of --write; exit with 3 where it deviates
    #[arg(long, value_name = "FILE", conflicts_with_all = ["run", "cpus", "explain"])]
    expect: Option<PathBuf>,
    /// Declare the state of this machine in a TOML file, for --expect on others
    #[arg(long, value_name = "FILE", conflicts_with_all = ["run", "cpus", "explain", "json", "all", "expect"])]
    write: Option<PathBuf>,
}

/// An impossible goal is a wrong argument; an unreadable machine is a failure.
pub fn goal_error(error: GoalError) -> anyhow::Error {
    match error {
        GoalError::Unknown(_) => error.into(),
        other => UsageError(other.to_string()).into(),
    }
}

/// The audit of this machine, for programs.
///
/// # Errors
/// The CPUs do not exist, or the run or the machine cannot be read.
pub fn document(cpus: Option<CpuList>, run: Option<&Path>) -> anyhow::Result<Value> {
    let scope = Scope::of(cpus);
    let machine = scope.machine();
    let measured = run.map(measured_by).transpose()?;
    let (cpus, _) = scope.cpus(&machine, measured.as_ref().map(|m| &m.cpus))?;
    let goal = Goal::to_audit(&machine, cpus).map_err(goal_error)?;
    let audit = audit(&machine, &goal, measured.as_ref().map(|m| &m.culprits));
    Ok(serde_json::to_value(tuning::audit_json(&audit))?)
}

/// Runs `audit`.
///
/// # Errors
/// A knob, run or CPU does not exist, or the run or the machine cannot be read.
pub fn run(args: &AuditArgs, places: &Places) -> anyhow::Result<Exit> {
    let machine = args.scope.machine();
    if let Some(path) = &args.write {
        return audit_expect::write(&machine, path);
    }
    if let Some(path) = &args.expect {
        return audit_expect::check(&machine, path, args.all, args.json);
    }
    let measured = args.scope.measured(places)?;
    let (cpus, why) = args
        .scope
        .cpus(&machine, measured.as_ref().map(|m| &m.cpus))?;
    let goal = Goal::to_audit(&machine, cpus).map_err(goal_error)?;
    if let Some(id) = &args.explain {
        let Some(knob) = catalogue::find(id) else {
            let similar = catalogue::similar(id);
            let hint = if similar.is_empty() {
                "; audit --all lists them".to_owned()
            } else {
                format!("; did you mean {}?", similar.join(", "))
            };
            return Err(UsageError(format!("there is no knob '{id}'{hint}")).into());
        };
        output::result(&tuning::explanation(
            knob,
            &Inspection::new(&machine, &goal).judge(knob),
            &goal,
            output::style(),
        ))?;
        return Ok(Exit::Ok);
    }
    if let Some(why) = why.filter(|_| !args.json) {
        output::talk(format!(
            "{}: {why} (choose with --cpus)",
            cpus_text(&goal.isolated)
        ));
    }
    let audit = audit(&machine, &goal, measured.as_ref().map(|m| &m.culprits));
    if args.json {
        output::json(&tuning::audit_json(&audit))?;
    } else {
        output::result(&tuning::audit(
            &audit,
            args.all,
            measured.as_ref().map(|m| m.run.as_str()),
            output::style(),
        ))?;
    }
    Ok(Exit::Ok)
}
