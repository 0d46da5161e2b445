//! Loads the summary of a stored run.

use jitterscope_analyze::periods::Effort;
use jitterscope_analyze::{Redactor, RowSums, RunSummary, SummaryBuilder};
use jitterscope_model::{
    Attribution, KeyLevel, MachineState, MarkLog, RunManifest, Stall, StallId,
};
use jitterscope_store::{RunReader, StoreError, StoredRow};
use std::path::Path;

/// Opens the run in a folder and sums it up; memory does not grow with the run.
///
/// # Errors
/// A file of the run is missing, damaged or of another schema version.
pub fn load(path: &Path) -> Result<(RunManifest, RunSummary), StoreError> {
    load_stored(path, RowSums::STORED.1, None, RowSums::STORED.0)
}

/// As [`load`], with this many of the worst stalls.
///
/// # Errors
/// As [`load`].
pub fn load_worst(path: &Path, worst: usize) -> Result<(RunManifest, RunSummary), StoreError> {
    load_stored(path, worst, None, RowSums::STORED.0)
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
    load_stored(path, worst, Some(effort), RowSums::STORED.0)
}

/// As [`load_periods`], for an open run.
///
/// # Errors
/// A file of the run is missing or damaged.
pub fn sum_up(run: &RunReader, worst: usize, effort: Effort) -> Result<RunSummary, StoreError> {
    stored(run, worst, Some(effort), RowSums::STORED.0)
}

/// As [`load_periods`], with culprits separated at this level.
///
/// # Errors
/// As [`load`].
pub fn load_by(
    path: &Path,
    worst: usize,
    effort: Effort,
    level: KeyLevel,
) -> Result<(RunManifest, RunSummary), StoreError> {
    load_stored(path, worst, Some(effort), level)
}

/// As [`load_periods`], without the names of the machine's owner, of the machine and of what runs on it.
///
/// # Errors
/// As [`load`].
pub fn load_redacted(
    path: &Path,
    worst: usize,
    effort: Effort,
) -> Result<(RunManifest, RunSummary), StoreError> {
    let reader = RunReader::open(path)?;
    let mut redactor = Some(Redactor::new());
    // The redactor processes all input before anything is derived from it.
    let (manifest, machine) = facts(&reader, &mut redactor)?;
    let builder = SummaryBuilder::new(&manifest)
        .machine(machine)
        .marks(marks(&reader, &mut redactor)?)
        .worst(worst)
        .periods(effort);
    let summary = with_rows(&reader, &mut redactor, builder)?;
    Ok((manifest, summary))
}

/// The application's logs, redacted on request.
///
/// # Errors
/// The file is damaged.
pub(crate) fn marks(
    reader: &RunReader,
    redactor: &mut Option<Redactor>,
) -> Result<Vec<MarkLog>, StoreError> {
    let logs = reader.marks()?;
    Ok(match redactor {
        Some(redactor) => logs.iter().map(|log| redactor.marks(log)).collect(),
        None => logs,
    })
}

/// One stall of a run with its parts, as in a report: the only entry of [`RunSummary::worst`], which is empty if the
/// run has no stall of this id. The rest of the summary about stalls covers only this one. Also returns the stall as
/// stored.
///
/// # Errors
/// As [`load`].
pub fn load_stall(
    reader: &RunReader,
    stall: StallId,
    redact: bool,
) -> Result<(RunSummary, Option<Stall>), StoreError> {
    let mut redactor = redact.then(Redactor::new);
    let (mut manifest, machine) = facts(reader, &mut redactor)?;
    // A stall of the idle control is shown on request.
    if let Some(wakeup) = &mut manifest.probe.wakeup {
        wakeup.idle_control = None;
    }
    let mut builder = SummaryBuilder::new(&manifest).machine(machine).only(stall);
    if !redact {
        builder = builder.path(reader.path());
    }
    let mut found = None;
    if let Some((stall, attribution)) = reader.stall(stall)? {
        found = Some(stall);
        builder.stall(
            &redactor
                .as_mut()
                .map_or(stall, |redactor| redactor.stall(&stall)),
        );
        if let Some(attribution) = attribution {
            builder.attribution(&redacted(attribution, &mut redactor));
        }
    }
    Ok((builder.finish(), found))
}

/// Uses the stored sums, without reading the stalls, if they answer the request.
fn load_stored(
    path: &Path,
    worst: usize,
    effort: Option<Effort>,
    level: KeyLevel,
) -> Result<(RunManifest, RunSummary), StoreError> {
    let reader = RunReader::open(path)?;
    let summary = stored(&reader, worst, effort, level)?;
    Ok((reader.into_manifest(), summary))
}

fn stored(
    reader: &RunReader,
    worst: usize,
    effort: Option<Effort>,
    level: KeyLevel,
) -> Result<RunSummary, StoreError> {
    let (stored_level, stored_worst, stored_effort) = RowSums::STORED;
    let fits =
        level == stored_level && worst <= stored_worst && effort.is_none_or(|e| e == stored_effort);
    let logs = marks(reader, &mut None)?;
    let fits = fits && logs.is_empty() && !SummaryBuilder::needs_stalls(reader.manifest());
    let sums: Option<RowSums> = if fits { reader.summary()? } else { None };
    let Some(sums) = sums.filter(RowSums::is_current) else {
        let builder = SummaryBuilder::new(reader.manifest())
            .machine(reader.machine()?)
            .marks(logs)
            .path(reader.path());
        let builder = builder.worst(worst).level(level);
        let builder = match effort {
            Some(effort) => builder.periods(effort),
            None => builder,
        };
        return with_rows(reader, &mut None, builder);
    };
    let sums = if effort.is_none() {
        sums.without_periods()
    } else {
        sums
    };
    let builder = SummaryBuilder::new(reader.manifest())
        .machine(reader.machine()?)
        .path(reader.path());
    let mut builder = builder.known(sums.with_worst(worst));
    for row in reader.intervals()? {
        builder.interval(&row?);
    }
    Ok(builder.finish())
}

fn redacted(attribution: Attribution, redactor: &mut Option<Redactor>) -> Attribution {
    match redactor {
        Some(redactor) => redactor.attribution(&attribution),
        None => attribution,
    }
}

/// The summary of all rows.
fn with_rows(
    reader: &RunReader,
    redactor: &mut Option<Redactor>,
    mut builder: SummaryBuilder<'_>,
) -> Result<RunSummary, StoreError> {
    rows(reader, redactor, |row| match row {
        StoredRow::Stall(stall) => builder.stall(&stall),
        StoredRow::Attribution(attribution) => builder.attribution(&attribution),
        StoredRow::Interval(interval) => builder.interval(&interval),
    })?;
    Ok(builder.finish())
}

/// Everything about a run except its rows.
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

/// The rows of a run, as [`RunReader::rows`] passes them, redacted on request.
pub(crate) fn rows(
    reader: &RunReader,
    redactor: &mut Option<Redactor>,
    mut each: impl FnMut(StoredRow),
) -> Result<(), StoreError> {
    reader.rows(|row| {
        each(match (row, redactor.as_mut()) {
            (StoredRow::Stall(stall), Some(redactor)) => StoredRow::Stall(redactor.stall(&stall)),
            (StoredRow::Attribution(of), Some(redactor)) => {
                StoredRow::Attribution(redactor.attribution(&of))
            }
            (row, _) => row,
        });
    })
}
