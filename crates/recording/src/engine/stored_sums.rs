//! Sums of a run's rows that cannot be computed while the rows arrive.

use jitterscope_analyze::SummaryBuilder;
use jitterscope_model::RunManifest;
use jitterscope_store::{RunReader, StoreError, StoredRow, add_summary};
use std::path::Path;

/// Reads the rows of a complete run once and stores their sums, so that no report needs to read them again. A pipeline
/// needs this: its report names what delayed the messages above the 99th percentile, and that limit is known only after
/// the last message. Memory use does not grow with the run.
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
