//! Chooses the runner of an experiment, by its arguments.

use super::experiment_args::ExperimentArgs;
use super::experiment_probe::probe_runner;
use super::experiment_runners::CommandRunner;
use crate::places::Places;
use jitterscope_experiment::Runner;
use jitterscope_model::Nanos;
use jitterscope_platform::{CpuChoice, Machine};

/// The runner for the probe or the command.
///
/// # Errors
/// It cannot be measured.
pub(super) fn runner(
    args: &ExperimentArgs,
    machine: Machine,
    measured: CpuChoice,
    places: &Places,
) -> anyhow::Result<Box<dyn Runner>> {
    if args.command.is_empty() {
        return Ok(Box::new(probe_runner(args, &machine, &measured, places)?));
    }
    Ok(Box::new(CommandRunner {
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
