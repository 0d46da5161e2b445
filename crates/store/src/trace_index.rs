//! An index by time of a stored trace's pages, for callers that read a few moments.

use crate::error::StoreError;
use crate::pages::SEGMENTS;
use crate::segment_spans::read_spans;
use crate::trace_pieces::{MomentsPages, StoredPage, segments, span_of};
use jitterscope_model::{PutInOrder, Ticks};
use jitterscope_platform::HeldDir;
use std::collections::HashMap;
use std::ffi::OsString;

/// The time spans of a stored trace's segments. Segments outside a moment are not read for it.
#[derive(Debug)]
pub struct TraceIndex {
    /// `None` if the run has no trace.
    folder: Option<HeldDir>,
    segments: Vec<Span>,
}

#[derive(Debug)]
struct Span {
    name: OsString,
    /// `None` if the span is unknown.
    within: Option<(Ticks, Ticks)>,
}

impl TraceIndex {
    /// The index that the run's writer noted. A segment that it does not list is read at every request.
    pub(crate) fn noted(trace: Option<HeldDir>) -> Result<TraceIndex, StoreError> {
        let Some(trace) = trace else {
            return Ok(TraceIndex {
                folder: None,
                segments: Vec::new(),
            });
        };
        let folder = match trace.open_dir(SEGMENTS) {
            Err(error) if error.is_absent() => {
                return Ok(TraceIndex {
                    folder: None,
                    segments: Vec::new(),
                });
            }
            other => other.map_err(StoreError::reading)?,
        };
        let noted: HashMap<OsString, (Ticks, Ticks)> = read_spans(&trace)
            .into_iter()
            .map(|span| (span.name.into(), (span.first, span.last)))
            .collect();
        let span = |name: OsString| Span {
            within: noted.get(&name).copied(),
            name,
        };
        let segments = segments(&folder)?.into_iter().map(span).collect();
        Ok(TraceIndex {
            folder: Some(folder),
            segments,
        })
    }

    /// The complete index: segments that the writer did not note are read now, once.
    pub(crate) fn new(trace: Option<HeldDir>) -> Result<TraceIndex, StoreError> {
        let mut index = TraceIndex::noted(trace)?;
        let Some(folder) = &index.folder else {
            return Ok(index);
        };
        for segment in index
            .segments
            .iter_mut()
            .filter(|segment| segment.within.is_none())
        {
            segment.within = Some(span_of(folder, &segment.name)?);
        }
        Ok(index)
    }

    /// As [`RunReader::trace_pages`](crate::RunReader::trace_pages).
    ///
    /// # Errors
    /// A segment is damaged or cannot be read, or there are more pages than the memory bound allows.
    pub fn pages(&self, from: Ticks, to: Ticks) -> Result<Vec<StoredPage>, StoreError> {
        let Some(folder) = &self.folder else {
            return Ok(Vec::new());
        };
        let mut found = MomentsPages::default();
        let may_have = |of: &&Span| {
            of.within
                .is_none_or(|(first, last)| first <= to && from <= last)
        };
        for segment in self.segments.iter().filter(may_have) {
            found.add(folder, &segment.name, from, to)?;
        }
        found.pages.order_by_key(|page| page.first);
        Ok(found.pages)
    }
}
