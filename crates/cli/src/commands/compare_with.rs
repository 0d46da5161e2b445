//! Common parts of `diff` and `experiment`: the sides, and what a knob predicts.

use crate::exit::UsageError;
use jitterscope_analyze::Redactor;
use jitterscope_analyze::compare::{Diff, Side};
use jitterscope_model::{CpuSet, Nanos, ProbeKind, Subject};
use jitterscope_store::{RunReader, StoreError, resolve_all};
use jitterscope_tune::{Effect, catalogue};
use jitterscope_view::compare::{CompareError, load_compared_with, pool_error};
use jitterscope_view::utc;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The folders of a side's runs, and the CPUs that it is limited to.
struct Named {
    paths: Vec<PathBuf>,
    cpus: Option<CpuSet>,
}

/// The sides: each the runs of a label, an id, `latest` or a folder, or several of them with commas between them, and
/// optionally `@CPUS`. Spinning probes of different thresholds are all counted from the longest one. All sides share the
/// redactor; with one, sides are called by their redacted label.
///
/// # Errors
/// There is no run, one cannot be read, or the runs of a side have different settings.
pub fn sides(
    runs: &Path,
    wanted: &[impl AsRef<str>],
    redactor: &mut Option<Redactor>,
) -> anyhow::Result<Vec<Side>> {
    sides_of(&|name| resolve_all(runs, name), None, wanted, redactor)
}

/// As [`sides`], of the runs that `resolve` finds by a name and that began at `since` or later, nanoseconds since the
/// epoch.
///
/// # Errors
/// As [`sides`], or a side has no such run.
pub fn sides_of(
    resolve: Resolve<'_>,
    since: Option<u64>,
    wanted: &[impl AsRef<str>],
    redactor: &mut Option<Redactor>,
) -> anyhow::Result<Vec<Side>> {
    let wanted = || wanted.iter().map(AsRef::as_ref);
    let mut named: Vec<Named> = wanted()
        .map(|wanted| find(resolve, wanted))
        .collect::<anyhow::Result<_>>()?;
    if let Some(since) = since {
        for (wanted, side) in wanted().zip(&mut named) {
            only_since(&mut side.paths, since)?;
            if side.paths.is_empty() {
                return Err(UsageError(format!(
                    "--since: no run of {wanted} began at {} UTC or later",
                    utc(since)
                ))
                .into());
            }
        }
    }
    let longest = longest_threshold(&named)?;
    wanted()
        .zip(&named)
        .map(|(wanted, named)| side(wanted, named, longest, redactor))
        .collect()
}

/// All runs of a name.
pub type Resolve<'a> = &'a dyn Fn(&str) -> Result<Vec<PathBuf>, StoreError>;

fn only_since(paths: &mut Vec<PathBuf>, since: u64) -> Result<(), StoreError> {
    let mut later = Vec::new();
    for path in paths.drain(..) {
        if RunReader::open(&path)?.manifest().started_realtime_ns() >= since {
            later.push(path);
        }
    }
    *paths = later;
    Ok(())
}

fn find(resolve: Resolve<'_>, wanted: &str) -> anyhow::Result<Named> {
    match find_all(resolve, wanted) {
        // A label may contain an @.
        Ok(paths) => Ok(Named { paths, cpus: None }),
        Err(error) => {
            let Some((run, list)) = wanted.rsplit_once('@') else {
                return Err(error.into());
            };
            let cpus: CpuSet = list.parse().map_err(|why| {
                UsageError(format!("{wanted}: {list:?} is no list of CPUs: {why}"))
            })?;
            if cpus.is_empty() {
                return Err(UsageError(format!("{wanted}: name a CPU behind the @")).into());
            }
            let (paths, cpus) = (find_all(resolve, run)?, Some(cpus));
            Ok(Named { paths, cpus })
        }
    }
}

/// All runs of a name, or of names with commas between them.
fn find_all(resolve: Resolve<'_>, wanted: &str) -> Result<Vec<PathBuf>, StoreError> {
    match resolve(wanted) {
        // A label may contain a comma.
        Err(_) if wanted.contains(',') => {
            let each = wanted.split(',').map(|one| resolve(one.trim()));
            Ok(each.collect::<Result<Vec<_>, _>>()?.concat())
        }
        other => other,
    }
}

/// The longest threshold of the runs of a spinning probe; `None` if they have the same.
fn longest_threshold(all: &[Named]) -> Result<Option<Nanos>, StoreError> {
    let mut thresholds = BTreeSet::new();
    for path in all.iter().flat_map(|named| &named.paths) {
        let reader = RunReader::open(path)?;
        let probe = &reader.manifest().probe;
        if probe.kind() == Some(ProbeKind::Spin) {
            thresholds.insert(probe.threshold_ns);
        }
    }
    Ok(thresholds.pop_last().filter(|_| !thresholds.is_empty()))
}

fn side(
    wanted: &str,
    named: &Named,
    counted_from: Option<Nanos>,
    redactor: &mut Option<Redactor>,
) -> anyhow::Result<Side> {
    let Named { paths, cpus } = named;
    let mut load = |path: &PathBuf| {
        let loaded = load_compared_with(path, cpus.as_ref(), counted_from, redactor);
        loaded.map_err(|error| match error {
            CompareError::Store(error) => anyhow::Error::from(error),
            asked_wrongly => UsageError(asked_wrongly.to_string()).into(),
        })
    };
    let loaded = paths
        .iter()
        .map(&mut load)
        .collect::<anyhow::Result<Vec<_>>>()?;
    let name = match (&redactor, loaded.first(), cpus) {
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
