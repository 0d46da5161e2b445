//! Pages of a stored trace by time, for whoever looks at some moments of it.

use crate::error::StoreError;
use crate::pages::SEGMENTS;
use crate::segment_spans::read_spans;
use crate::trace_pieces::{StoredPage, segment_pages, segments};
use jitterscope_model::Ticks;
use jitterscope_platform::HeldDir;
use std::collections::HashMap;
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
    /// `None` where that is not known.
    within: Option<(Ticks, Ticks)>,
}

impl TraceIndex {
    /// As far as the run's writer noted it: what it did not is read whenever it is asked for.
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

    /// All of it: what the writer did not note is read now, once.
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
            let (mut first, mut last) = (Ticks(u64::MAX), Ticks(0));
            for page in segment_pages(folder, &segment.name, Ticks(0), Ticks(u64::MAX))? {
                (first, last) = (first.min(page.first), last.max(page.last));
            }
            segment.within = Some((first, last));
        }
        Ok(index)
    }

    /// As [`RunReader::trace_pages`](crate::RunReader::trace_pages).
    ///
    /// # Errors
    /// A segment cannot be read, is no segment, or was cut short.
    pub fn pages(&self, from: Ticks, to: Ticks) -> Result<Vec<StoredPage>, StoreError> {
        let Some(folder) = &self.folder else {
            return Ok(Vec::new());
        };
        let mut pages = Vec::new();
        let may_have = |of: &&Span| {
            of.within
                .is_none_or(|(first, last)| first <= to && from <= last)
        };
        for segment in self.segments.iter().filter(may_have) {
            pages.append(&mut segment_pages(folder, &segment.name, from, to)?);
        }
        pages.sort_by_key(|page| page.first);
        Ok(pages)
    }
}
