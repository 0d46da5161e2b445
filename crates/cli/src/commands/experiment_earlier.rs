//! What earlier runs say of those that an experiment is to make: how long they are, and how they scatter.

use super::experiment::ExperimentArgs;
use super::experiment_lab::timed;
use jitterscope_model::{CpuSet, Nanos, ProbeKind};
use jitterscope_store::{RunEntry, RunReader};
use jitterscope_view::compare::load_compared;
use std::path::{Path, PathBuf};

/// Runs looked at.
const EARLIER: usize = 12;

/// What is known of runs that are not made yet.
#[derive(Debug, Default)]
pub struct Known {
    /// How long one measures; none where nothing says.
    pub run: Option<Nanos>,
    /// Totals of earlier runs, newest first.
    pub totals: Vec<f64>,
}

/// Looks at the newest runs of this kind.
pub fn earlier(args: &ExperimentArgs, runs: &Path, cpus: &CpuSet) -> Known {
    let all = jitterscope_store::list(runs).map(|(all, _)| all).unwrap_or_default();
    if !args.command.is_empty() {
        return of_command(&args.command, &all);
    }
    let totals = of_probe(args, cpus, &all)
        .into_iter()
        .take(EARLIER)
        .filter_map(|path| load_compared(&path, None).ok()?.total())
        .collect();
    Known { run: Some(args.duration), totals }
}

/// The runs of the newest label that has some of this probe on these CPUs: of one setting, newest first.
pub fn of_probe(args: &ExperimentArgs, cpus: &CpuSet, all: &[RunEntry]) -> Vec<PathBuf> {
    let kind = args.probe.kind();
    let pinned = if args.probe.is_on_cpus() { cpus.clone() } else { CpuSet::new() };
    let like = |run: &&RunEntry| {
        run.head.probe.kind() == Some(kind) && (pinned.is_empty() || run.head.probe.cpus == pinned)
    };
    let Some(newest) = all.iter().rev().find(like).map(|run| &run.head.label) else { return Vec::new() };
    all.iter()
        .rev()
        .filter(like)
        .filter(|run| run.head.label == *newest)
        .map(|run| run.path.clone())
        .collect()
}

/// Whole runs of the very command: how long it took is both the length of a run and its total.
fn of_command(command: &[String], all: &[RunEntry]) -> Known {
    let attached = all.iter().rev().filter(|run| run.head.probe.kind() == Some(ProbeKind::Attach));
    let of_it = |line: &[String]| {
        let after = line.iter().position(|word| word == "--").and_then(|at| line.get(at + 1..));
        after == Some(command)
    };
    let mut took = Vec::new();
    let mut totals = Vec::new();
    for run in attached.filter(|run| !run.head.interrupted) {
        let Ok(reader) = RunReader::open(&run.path) else { continue };
        if !of_it(&reader.manifest().command_line) {
            continue;
        }
        took.push(run.head.figures.duration_ns);
        totals.extend(load_compared(&run.path, None).ok().and_then(|run| timed(run).total()));
        if took.len() == EARLIER {
            break;
        }
    }
    let mean = took.iter().copied().sum::<Nanos>().0.checked_div(took.len() as u64);
    Known { run: mean.map(Nanos), totals }
}
