//! The end of an experiment: its conditions, its Markdown, and its exit code.

use super::experiment_args::ExperimentArgs;
use super::gate::{OfRun, tested};
use crate::exit::Exit;
use anyhow::Context;
use jitterscope_experiment::{Ended, Outcome};
use jitterscope_export::WholeFile;
use jitterscope_view::gate_table;
use jitterscope_view::report::Report;
use std::path::Path;

/// Evaluates the conditions on what was compared, writes the files, and returns the exit code. `outcome` is `None` if
/// there was nothing to compare; `report` is what the screen shows. A stopped experiment has failed, whatever its
/// conditions; one that ends without a pair decides nothing.
///
/// # Errors
/// A run cannot be read, or a file cannot be written.
pub(super) fn end(
    args: &ExperimentArgs,
    title: &str,
    outcome: Option<&Outcome>,
    ended: Ended,
    report: Report,
) -> anyhow::Result<Exit> {
    let diff = outcome.and_then(|outcome| outcome.diff.as_ref());
    let changed = diff.iter().flat_map(|diff| &diff.sides[1..]);
    let runs: Vec<OfRun<'_>> = changed
        .flat_map(|side| &side.runs)
        .map(|run| OfRun {
            name: format!("{} {}", run.label, run.id),
            path: Path::new(&run.path),
            only: None,
        })
        .collect();
    let results = args.gates.of_changes(diff, &runs)?;
    if let Some(path) = &args.markdown {
        let mut page = gate_table(&results);
        page.append(report);
        WholeFile::open(path)
            .and_then(|file| file.write(page.markdown(title).as_bytes()))
            .with_context(|| format!("--markdown {}", path.display()))?;
    }
    let gate = args
        .gates
        .tell(&tested("jitterscope experiment", diff), &results)?;
    // The first session of an experiment across a reboot has no pairs yet.
    let nothing_counts = match outcome {
        Some(outcome) => outcome.pairs == 0 && ended != Ended::AwaitsReboot,
        None => ended == Ended::Deadline,
    };
    Ok(match gate {
        _ if ended == Ended::Stopped => Exit::Failed,
        Exit::Ok if nothing_counts => Exit::Unavailable,
        gate => gate,
    })
}
