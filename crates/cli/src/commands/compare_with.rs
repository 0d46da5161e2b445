//! Common parts of `diff` and `experiment`: the sides, and what a knob predicts.

use crate::exit::UsageError;
use jitterscope_analyze::Redactor;
use jitterscope_analyze::compare::{Diff, Side};
use jitterscope_model::{CpuSet, Subject};
use jitterscope_store::resolve_all;
use jitterscope_tune::{Effect, catalogue};
use jitterscope_view::compare::{CompareError, load_compared_with, pool_error};
use std::path::Path;

/// The runs of a label, an id, `latest` or a folder, each optionally with `@CPUS`. All sides share the redactor; with
/// one, sides are called by their redacted label.
///
/// # Errors
/// There is no run, one cannot be read, or they have different settings.
pub fn side(runs: &Path, wanted: &str, redactor: &mut Option<Redactor>) -> anyhow::Result<Side> {
    let (paths, cpus) = match resolve_all(runs, wanted) {
        // A label may contain an @.
        Ok(paths) => (paths, None),
        Err(error) => match wanted.rsplit_once('@') {
            None => return Err(error.into()),
            Some((run, list)) => {
                let cpus: CpuSet = list.parse().map_err(|why| {
                    UsageError(format!("{wanted}: {list:?} is no list of CPUs: {why}"))
                })?;
                if cpus.is_empty() {
                    return Err(UsageError(format!("{wanted}: name a CPU behind the @")).into());
                }
                (resolve_all(runs, run)?, Some(cpus))
            }
        },
    };
    let mut load = |path: &std::path::PathBuf| {
        load_compared_with(path, cpus.as_ref(), redactor).map_err(|error| match error {
            CompareError::Store(error) => anyhow::Error::from(error),
            asked_wrongly => UsageError(asked_wrongly.to_string()).into(),
        })
    };
    let loaded = paths
        .iter()
        .map(&mut load)
        .collect::<anyhow::Result<Vec<_>>>()?;
    let name = match (&redactor, loaded.first(), &cpus) {
        (Some(_), Some(run), Some(cpus)) => format!("{}@{cpus}", run.label),
        (Some(_), Some(run), None) => run.label.clone(),
        _ => wanted.to_owned(),
    };
    Ok(Side::pool(&name, loaded).map_err(|error| UsageError(pool_error(&error)))?)
}

/// The comparison without the paths of its runs.
pub fn without_paths(mut found: Diff) -> Diff {
    for run in found.sides.iter_mut().flat_map(|side| &mut side.runs) {
        run.path.clear();
    }
    found
}

/// Whether a knob declares that it certainly removes a culprit, on any CPU.
pub fn answers(knob: &str, subject: &Subject) -> bool {
    let effect = catalogue::find(knob).and_then(|knob| knob.answers(subject, &CpuSet::new()));
    effect.is_some_and(|effect| effect != Effect::Perhaps)
}
