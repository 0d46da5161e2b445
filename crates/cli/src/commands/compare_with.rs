//! What `diff` and `experiment` have in common: which runs are meant, and what a knob predicts.

use crate::exit::UsageError;
use jitterscope_analyze::Redactor;
use jitterscope_analyze::compare::{Diff, Side};
use jitterscope_model::{CpuSet, Subject};
use jitterscope_store::resolve_all;
use jitterscope_tune::{Effect, catalogue};
use jitterscope_view::compare::{CompareError, load_compared_with, pool_error};
use std::path::Path;

/// The runs meant by a label, an id, `latest` or a folder, each with `@CPUS` behind it or without. With a redactor,
/// which is that of all sides, they are called by their label as it leaves it.
///
/// # Errors
/// There is none, one cannot be read, or they are not of one setting.
pub fn side(runs: &Path, wanted: &str, redactor: &mut Option<Redactor>) -> anyhow::Result<Side> {
    let (paths, cpus) = match resolve_all(runs, wanted) {
        // A label may have an @ in it.
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

/// A comparison without where its runs lie.
pub fn without_paths(mut found: Diff) -> Diff {
    for run in found.sides.iter_mut().flat_map(|side| &mut side.runs) {
        run.path.clear();
    }
    found
}

/// Whether a knob declares that it removes a culprit, and does not only perhaps.
pub fn answers(knob: &str, subject: &Subject) -> bool {
    catalogue::find(knob)
        .is_some_and(|knob| knob.answers(subject).is_some_and(|e| e != Effect::Perhaps))
}
