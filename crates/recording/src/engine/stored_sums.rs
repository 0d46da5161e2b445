//! What a run's rows come to, where that could not be told as they came.

use jitterscope_analyze::SummaryBuilder;
use jitterscope_model::RunManifest;
use jitterscope_store::{RunReader, StoreError, StoredRow, add_summary};
use std::path::Path;

/// Reads the rows of a run that is whole once and stores what they come to, so that no report need read them again. Of a
/// pipeline that is the only way: its report tells who held up the messages above the 99th percentile, which is known
/// when the last has come. Memory does not grow with the run.
pub(super) fn store_sums(path: &Path, manifest: &RunManifest) -> Result<(), StoreError> {
    let run = RunReader::with_manifest(path, manifest.clone())?;
    let mut builder = SummaryBuilder::new(run.manifest())
        .machine(run.machine()?)
        .stored();
    run.rows(|row| match row {
        StoredRow::Stall(stall) => builder.stall(&stall),
        StoredRow::Attribution(attribution) => builder.attribution(&attribution),
        StoredRow::Interval(interval) => builder.interval(&interval),
    })?;
    add_summary(path, &builder.into_sums())
}
