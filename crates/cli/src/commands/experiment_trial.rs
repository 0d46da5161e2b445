//! Short runs before an estimate: the time that a run takes here besides its measurement.

use super::experiment_args::ExperimentArgs;
use super::experiment_probe::probe_runner;
use crate::places::Places;
use jitterscope_experiment::{OverheadFrom, RunOverhead};
use jitterscope_model::Nanos;
use jitterscope_platform::{CpuChoice, Machine};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// The longest measurement. A run of this length has the warm-up of longer ones.
const LONGEST: Nanos = Nanos(500_000_000);

/// Makes two runs as the experiment's, and removes them; the first one also reads files that later ones find in memory.
/// `None` if they cannot be made, or if a command decides their length.
pub(super) fn overhead(
    args: &ExperimentArgs,
    machine: &Machine,
    measured: &CpuChoice,
    places: &Places,
    stop: &AtomicBool,
) -> Option<RunOverhead> {
    if !args.command.is_empty() {
        return None;
    }
    let length = args.duration.min(LONGEST);
    let mut runner = probe_runner(args, machine, measured, places).ok()?;
    let mut took = u64::MAX;
    for _ in 0..2 {
        let began = Instant::now();
        runner.try_out(length, stop)?;
        took = took.min(u64::try_from(began.elapsed().as_nanos()).ok()?);
    }
    Some(RunOverhead {
        time: Nanos(took.saturating_sub(length.0)),
        from: OverheadFrom::TrialRun,
    })
}
