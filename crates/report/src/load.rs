//! From a stored run to its summary.

use jitterscope_analyze::periods::Effort;
use jitterscope_analyze::{RunSummary, SummaryBuilder};
use jitterscope_model::RunManifest;
use jitterscope_store::{RunReader, StoreError};
use std::path::Path;

/// Opens the run in a folder and sums it up; memory does not grow with the run.
///
/// # Errors
/// A file of it is missing, damaged or of another schema version.
pub fn load(path: &Path) -> Result<(RunManifest, RunSummary), StoreError> {
    load_with(path, |builder| builder)
}

/// As [`load`], with this many of the worst stalls.
///
/// # Errors
/// As [`load`].
pub fn load_worst(path: &Path, worst: usize) -> Result<(RunManifest, RunSummary), StoreError> {
    load_with(path, |builder| builder.worst(worst))
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
    load_with(path, |builder| builder.worst(worst).periods(effort))
}

fn load_with(
    path: &Path,
    set: impl FnOnce(SummaryBuilder<'_>) -> SummaryBuilder<'_>,
) -> Result<(RunManifest, RunSummary), StoreError> {
    let reader = RunReader::open(path)?;
    let manifest = reader.manifest().clone();
    let mut builder = set(SummaryBuilder::new(&manifest).path(path));
    let mut attributions = reader.attributions()?.peekable();
    for stall in reader.stalls()? {
        let stall = stall?;
        builder.stall(&stall);
        // In step, so that no table is ever in memory. An error is taken out to be returned.
        let due = |next: &Result<jitterscope_model::Attribution, StoreError>| {
            next.as_ref().map_or(true, |attribution| attribution.stall <= stall.id)
        };
        while let Some(attribution) = attributions.next_if(due) {
            builder.attribution(&attribution?);
        }
    }
    for attribution in attributions {
        builder.attribution(&attribution?);
    }
    for row in reader.intervals()? {
        builder.interval(&row?);
    }
    let summary = builder.finish();
    Ok((manifest, summary))
}
