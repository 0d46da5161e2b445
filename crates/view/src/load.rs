//! From a stored run to its summary.

use jitterscope_analyze::periods::Effort;
use jitterscope_analyze::{Redactor, RunSummary, SummaryBuilder};
use jitterscope_model::{Attribution, IntervalRow, KeyLevel, MachineState, RunManifest, Stall, StallId};
use jitterscope_store::{RunReader, StoreError};
use std::path::Path;

/// Opens the run in a folder and sums it up; memory does not grow with the run.
///
/// # Errors
/// A file of it is missing, damaged or of another schema version.
pub fn load(path: &Path) -> Result<(RunManifest, RunSummary), StoreError> {
    load_with(path, None, |builder| builder)
}

/// As [`load`], with this many of the worst stalls.
///
/// # Errors
/// As [`load`].
pub fn load_worst(path: &Path, worst: usize) -> Result<(RunManifest, RunSummary), StoreError> {
    load_with(path, None, |builder| builder.worst(worst))
}

/// As [`load_worst`], with the periods of the stalls.
///
/// # Errors
/// As [`load`].
pub fn load_periods(
    path: &Path,
    worst: usize,
    effort: Effort,
) -> Result<(RunManifest, RunSummary), StoreError> {
    load_with(path, None, |builder| builder.worst(worst).periods(effort))
}

/// As [`load_periods`], with culprits told apart so finely.
///
/// # Errors
/// As [`load`].
pub fn load_by(
    path: &Path,
    worst: usize,
    effort: Effort,
    level: KeyLevel,
) -> Result<(RunManifest, RunSummary), StoreError> {
    load_with(path, None, |builder| builder.worst(worst).periods(effort).level(level))
}

/// As [`load_periods`], without who owns the machine, what it is called and what runs on it.
///
/// # Errors
/// As [`load`].
pub fn load_redacted(
    path: &Path,
    worst: usize,
    effort: Effort,
) -> Result<(RunManifest, RunSummary), StoreError> {
    load_with(path, Some(Redactor::new()), |builder| builder.worst(worst).periods(effort))
}

/// One stall with its parts, as the report tells it: the only one of [`RunSummary::worst`], which is empty when the run has none of
/// this number.
///
/// # Errors
/// As [`load`].
pub fn load_stall(
    path: &Path,
    stall: StallId,
    redact: bool,
) -> Result<(RunManifest, RunSummary), StoreError> {
    load_with(path, redact.then(Redactor::new), |builder| builder.only(stall))
}

/// All that is read goes through the redactor, where there is one, before anything is made of it.
fn load_with(
    path: &Path,
    mut redactor: Option<Redactor>,
    set: impl FnOnce(SummaryBuilder<'_>) -> SummaryBuilder<'_>,
) -> Result<(RunManifest, RunSummary), StoreError> {
    let reader = RunReader::open(path)?;
    let (manifest, machine) = facts(&reader, &mut redactor)?;
    let mut builder = set(SummaryBuilder::new(&manifest).machine(machine));
    if redactor.is_none() {
        builder = builder.path(path);
    }
    rows(&reader, &mut redactor, |row| match row {
        Row::Stall(stall) => builder.stall(stall),
        Row::Attribution(attribution) => builder.attribution(attribution),
        Row::Interval(interval) => builder.interval(interval),
    })?;
    let summary = builder.finish();
    Ok((manifest, summary))
}

/// A row of a run.
pub(crate) enum Row<'r> {
    Stall(&'r Stall),
    /// Of a stall that came before.
    Attribution(&'r Attribution),
    Interval(&'r IntervalRow),
}

/// Everything about a run but its rows.
pub(crate) fn facts(
    reader: &RunReader,
    redactor: &mut Option<Redactor>,
) -> Result<(RunManifest, Option<MachineState>), StoreError> {
    Ok(match redactor {
        Some(redactor) => (
            redactor.manifest(reader.manifest()),
            reader.machine()?.map(|machine| redactor.machine(&machine)),
        ),
        None => (reader.manifest().clone(), reader.machine()?),
    })
}

/// The rows of a run: stalls, each attribution after its stall, then intervals.
pub(crate) fn rows(
    reader: &RunReader,
    redactor: &mut Option<Redactor>,
    mut each: impl FnMut(Row<'_>),
) -> Result<(), StoreError> {
    let told = |attribution: Attribution, redactor: &mut Option<Redactor>| match redactor {
        Some(redactor) => redactor.attribution(&attribution),
        None => attribution,
    };
    let mut attributions = reader.attributions()?.peekable();
    for stall in reader.stalls()? {
        let stall = stall?;
        let stall = redactor.as_mut().map_or(stall, |redactor| redactor.stall(&stall));
        each(Row::Stall(&stall));
        // In step, so that no table is ever in memory. An error is taken out to be returned.
        let due = |next: &Result<Attribution, StoreError>| {
            next.as_ref().map_or(true, |attribution| attribution.stall <= stall.id)
        };
        while let Some(attribution) = attributions.next_if(due) {
            each(Row::Attribution(&told(attribution?, redactor)));
        }
    }
    for attribution in attributions {
        each(Row::Attribution(&told(attribution?, redactor)));
    }
    for row in reader.intervals()? {
        each(Row::Interval(&row?));
    }
    Ok(())
}
