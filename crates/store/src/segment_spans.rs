//! Where in time the segments of a stored trace lie, as their writer notes it for readers.

use crate::document::json;
use crate::error::StoreError;
use jitterscope_model::Ticks;
use jitterscope_platform::HeldDir;
use serde::{Deserialize, Serialize};
use std::io::Write;

/// The list, in the trace's folder.
const SPANS: &str = "spans.json";
/// No list of ours is longer, bytes: a segment has some 80 in it.
const LARGEST_SPANS: u64 = 64 << 20;

/// Where in time a segment's pages lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SegmentSpan {
    pub(crate) name: String,
    /// The earliest record of its pages, and the latest; that before this where it has no pages.
    #[serde(rename = "first_ticks")]
    pub(crate) first: Ticks,
    #[serde(rename = "last_ticks")]
    pub(crate) last: Ticks,
}

/// Writes the list. Where it cannot be written, readers lose time alone: the segments say it themselves.
///
/// # Errors
/// Half a list is there and cannot be removed.
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

/// The list of a trace; empty where there is none. It only saves time, so that one that cannot be read is as good as
/// none.
pub(crate) fn read_spans(trace: &HeldDir) -> Vec<SegmentSpan> {
    let text = trace.read(SPANS, LARGEST_SPANS).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}
