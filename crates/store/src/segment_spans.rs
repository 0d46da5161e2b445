//! The time spans of a stored trace's segments, as the writer notes them for readers.

use crate::budget::document;
use crate::document::json;
use crate::error::StoreError;
use jitterscope_model::Ticks;
use jitterscope_platform::HeldDir;
use serde::{Deserialize, Serialize};
use std::io::Write;

/// The file of the list, in the trace's folder.
pub(crate) const SPANS: &str = "spans.json";
/// The largest accepted list, bytes. A segment takes about 80.
const LARGEST_SPANS: u64 = 64 << 20;

/// The time span of a segment's pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SegmentSpan {
    pub(crate) name: String,
    /// The earliest and the latest record of its pages. `last` is before `first` in a segment without pages.
    #[serde(rename = "first_ticks")]
    pub(crate) first: Ticks,
    #[serde(rename = "last_ticks")]
    pub(crate) last: Ticks,
}

/// Writes the list. Without it readers only lose time: they can compute it from the segments.
///
/// # Errors
/// An incomplete list exists and cannot be removed.
pub(crate) fn write_spans(trace: &HeldDir, spans: &[SegmentSpan]) -> Result<(), StoreError> {
    let text = json(&trace.path().join(SPANS), &spans)?;
    let Ok(mut file) = trace.create_new(SPANS) else {
        return Ok(());
    };
    match file.write_all(&text).and_then(|()| file.sync_all()) {
        Ok(()) => Ok(()),
        Err(_) => trace.remove_file(SPANS).map_err(StoreError::writing),
    }
}

/// Reads the list of a trace. A missing or unreadable list counts as empty: the list only saves time.
pub(crate) fn read_spans(trace: &HeldDir) -> Vec<SegmentSpan> {
    let Ok(file) = trace.open_file(SPANS) else {
        return Vec::new();
    };
    document(&file, &trace.path().join(SPANS), LARGEST_SPANS).unwrap_or_default()
}
