//! Pages of a stored trace by time, for whoever looks at many moments of it.

use crate::error::StoreError;
use crate::trace_pieces::{StoredPage, segment_pages, segments};
use jitterscope_model::Ticks;
use jitterscope_platform::HeldDir;
use std::ffi::OsString;

/// Where in time the segments of a stored trace lie: those that have nothing of a moment are not read for it.
#[derive(Debug)]
pub struct TraceIndex {
    /// `None` where the run has no trace.
    folder: Option<HeldDir>,
    segments: Vec<Span>,
}

#[derive(Debug)]
struct Span {
    name: OsString,
    first: Ticks,
    last: Ticks,
}

impl TraceIndex {
    pub(crate) fn new(folder: Option<HeldDir>) -> Result<TraceIndex, StoreError> {
        let mut found = Vec::new();
        for name in folder.as_ref().map_or_else(|| Ok(Vec::new()), segments)? {
            let (mut first, mut last) = (Ticks(u64::MAX), Ticks(0));
            if let Some(folder) = &folder {
                let meet = |of: &StoredPage| (first, last) = (first.min(of.first), last.max(of.last));
                segment_pages(folder, &name, Ticks(0), Ticks(u64::MAX))?.iter().for_each(meet);
            }
            found.push(Span { name, first, last });
        }
        Ok(TraceIndex { folder, segments: found })
    }

    /// As [`RunReader::trace_pages`](crate::RunReader::trace_pages).
    ///
    /// # Errors
    /// A segment cannot be read, is no segment, or was cut short.
    pub fn pages(&self, from: Ticks, to: Ticks) -> Result<Vec<StoredPage>, StoreError> {
        let Some(folder) = &self.folder else { return Ok(Vec::new()) };
        let mut pages = Vec::new();
        for segment in self.segments.iter().filter(|segment| segment.first <= to && from <= segment.last) {
            pages.append(&mut segment_pages(folder, &segment.name, from, to)?);
        }
        pages.sort_by_key(|page| page.first);
        Ok(pages)
    }
}
