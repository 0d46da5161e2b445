//! Loads a stored run for drawing.

use crate::load;
use jitterscope_analyze::periods::Effort;
use jitterscope_analyze::picture::{Picture, PictureBuilder};
use jitterscope_analyze::{Redactor, RunSummary, SummaryBuilder};
use jitterscope_model::{KeyLevel, RunManifest};
use jitterscope_store::{RunReader, StoreError, StoredRow};

/// A run, ready for drawing.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// Everything except its rows; redacted on request.
    pub manifest: RunManifest,
    pub summary: RunSummary,
    /// The rows to draw.
    pub picture: Picture,
}

#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The number of the worst stalls.
    pub worst: usize,
    /// The effort of the period search.
    pub effort: Effort,
    pub stalls: usize,
    /// Whether to redact names.
    pub redact: bool,
}

/// Reads a run; memory does not grow with it beyond what is wanted.
///
/// # Errors
/// A file of the run is missing or damaged.
pub fn load_drawn(reader: &RunReader, wanted: Wanted) -> Result<Drawn, StoreError> {
    load_drawn_with(reader, wanted, &mut wanted.redact.then(Redactor::new))
}

/// As [`load_drawn`], with a redactor that other runs share, instead of the one that `wanted` asks for.
///
/// # Errors
/// As [`load_drawn`].
pub fn load_drawn_with(
    reader: &RunReader,
    wanted: Wanted,
    redactor: &mut Option<Redactor>,
) -> Result<Drawn, StoreError> {
    let (manifest, machine) = load::facts(reader, redactor)?;
    let mut stalls = 0u64;
    for stall in reader.stalls()? {
        stall?;
        stalls += 1;
    }
    let mut summary = SummaryBuilder::new(&manifest)
        .machine(machine)
        .marks(load::marks(reader, redactor)?)
        .worst(wanted.worst)
        .periods(wanted.effort)
        .level(KeyLevel::Program);
    if redactor.is_none() {
        summary = summary.path(reader.path());
    }
    let mut picture = PictureBuilder::new(&manifest, stalls, wanted.stalls);
    load::rows(reader, redactor, |row| match row {
        StoredRow::Stall(stall) => {
            summary.stall(&stall);
            picture.stall(&stall);
        }
        StoredRow::Attribution(attribution) => {
            summary.attribution(&attribution);
            picture.attribution(&attribution);
        }
        StoredRow::Interval(interval) => summary.interval(&interval),
    })?;
    let (summary, picture) = (summary.finish(), picture.finish());
    Ok(Drawn {
        manifest,
        summary,
        picture,
    })
}
