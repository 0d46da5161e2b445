//! The raw trace of a killed recorder, as far as it is whole.

use crate::error::StoreError;
use crate::pages::{CONTEXT, SEGMENTS, TRACE};
use crate::segment::whole_frames;
use crate::segment_spans::{SPANS, SegmentSpan, write_spans};
use crate::trace_pieces::{number_of, segments};
use jitterscope_model::StoredTrace;
use jitterscope_platform::HeldDir;
use std::io::BufReader;

/// Cuts every segment behind its last whole frame, removes those without any, and writes the index. Without the context
/// that decodes the pages it removes them all. May be repeated.
///
/// # Errors
/// The disk fails, or a segment cannot be read.
pub(crate) fn mend_trace(run: &HeldDir, limit_bytes: u64) -> Result<StoredTrace, StoreError> {
    let mut stored = StoredTrace {
        limit_bytes,
        ..StoredTrace::default()
    };
    let Ok(trace) = run.open_dir(TRACE) else {
        return Ok(stored);
    };
    if !trace.has(CONTEXT) {
        if trace.has(SEGMENTS) {
            trace.remove_tree(SEGMENTS).map_err(StoreError::writing)?;
        }
        return Ok(stored);
    }
    let Ok(folder) = trace.open_dir(SEGMENTS) else {
        return Ok(stored);
    };
    let mut spans = Vec::new();
    stored.complete = limit_bytes > 0;
    for name in segments(&folder)? {
        let path = folder.path().join(&name);
        let file = folder.open_own(&name).map_err(StoreError::writing)?;
        let whole = whole_frames(BufReader::new(&file)).map_err(|e| StoreError::read(&path, e))?;
        if whole.bytes == 0 {
            folder.remove_file(&name).map_err(StoreError::writing)?;
            continue;
        }
        file.set_len(whole.bytes)
            .and_then(|()| file.sync_all())
            .map_err(|e| StoreError::write(&path, e))?;
        stored.bytes += whole.bytes;
        spans.push(SegmentSpan {
            name: name.to_string_lossy().into_owned(),
            first: whole.first,
            last: whole.last,
        });
        // Segments are numbered from 1. The recorder removed those that are missing.
        stored.complete &= number_of(&name).is_some_and(|number| number as usize == spans.len());
    }
    let _ = trace.remove_file(SPANS);
    if !spans.is_empty() {
        write_spans(&trace, &spans)?;
    }
    Ok(stored)
}
