//! What an experiment measures, by its arguments.

use super::experiment_args::ExperimentArgs;
use super::experiment_lab::CommandLab;
use super::experiment_probe::probe_lab;
use crate::places::Places;
use jitterscope_experiment::Subject;
use jitterscope_model::Nanos;
use jitterscope_platform::{CpuChoice, Machine};

/// The probe or the command that is measured.
///
/// # Errors
/// What is to be measured cannot be.
pub(super) fn subject(
    args: &ExperimentArgs,
    machine: Machine,
    measured: CpuChoice,
    places: &Places,
) -> anyhow::Result<Box<dyn Subject>> {
    if args.command.is_empty() {
        return Ok(Box::new(probe_lab(args, &machine, &measured, places)?));
    }
    Ok(Box::new(CommandLab {
        machine,
        command: args.command.clone(),
        env: args.env.clone(),
        threshold: args.threshold.unwrap_or(Nanos(50_000)),
        clock: args.clock.kind(),
        label: args.label.clone(),
        runs: places.runs()?,
        quiet: args.quiet,
    }))
}
