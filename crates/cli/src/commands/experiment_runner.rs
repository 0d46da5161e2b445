//! Who makes an experiment's runs, by its arguments.

use super::experiment_args::ExperimentArgs;
use super::experiment_probe::probe_runner;
use super::experiment_runners::CommandRunner;
use crate::places::Places;
use jitterscope_experiment::Runner;
use jitterscope_model::Nanos;
use jitterscope_platform::{CpuChoice, Machine};

/// A runner of the probe or of the command that is measured.
///
/// # Errors
/// What is to be measured cannot be.
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
