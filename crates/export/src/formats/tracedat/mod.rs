//! `tracedat`: a `trace.dat` of version 6 with the pages that the run kept, for `trace-cmd report` and KernelShark.
//!
//! The file has a header, options, a table for each buffer, and then each CPU's pages in one piece. So the trace is read
//! twice: first to count the pages and to learn the threads' names ([`census`]), then to put every page in its place.

mod census;
mod clock;
mod header;

use super::Format;
use crate::address::Address;
use crate::error::{DestinationError, ExportError};
use crate::exporter::{CopyRun, Exporter};
use crate::output::Output;
use crate::pace::Pace;
use census::{Buffer, Census};
use clock::FileClock;
use header::Header;
use jitterscope_model::{Delivery, TraceRole};
use jitterscope_source::{Page, PageLayout, TraceContext};
use jitterscope_store::{RunReader, TracePiece};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub(super) static FORMAT: Format = Format {
    schemes: &["tracedat"],
    usage: &[(
        "tracedat://FILE",
        "the kernel's trace as a trace.dat, for trace-cmd and KernelShark",
    )],
    notes: "",
    read,
};

fn read(address: &Address<'_>) -> Result<Exporter, DestinationError> {
    let path = address.path()?;
    address.without_options()?;
    if path == Path::new("-") {
        return Err(address.incomplete("name a file: a trace.dat is not written in order"));
    }
    Ok(Exporter::copied_file(path, "page", TraceDat::open))
}

/// A file that is being written.
struct TraceDat(Output);

impl TraceDat {
    fn open(path: &Path) -> Result<TraceDat, ExportError> {
        let mut output = Output::open(path, Pace::Stored)?;
        // Pages hold kernel addresses.
        output.private()?;
        Ok(TraceDat(output))
    }
}

impl CopyRun for TraceDat {
    fn copy(mut self: Box<Self>, run: &RunReader) -> Result<Delivery, ExportError> {
        let Some(context) = run.trace_context::<TraceContext>()? else {
            return Err(ExportError::NoTrace);
        };
        let described =
            |error: &dyn std::fmt::Display| ExportError::TraceContext(error.to_string());
        let layout = context.layout().map_err(|e| described(&e))?;
        let census = Census::take(run, &context)?;
        if census.pages() == 0 {
            return Err(ExportError::NoTrace);
        }
        let clock = FileClock::new(run.manifest());
        let header = Header {
            context: &context,
            manifest: run.manifest(),
            page_size: layout.page_size(),
            census: &census,
            clock: &clock,
        };
        let output = &mut self.0;
        output.begin()?;
        let (bytes, places) = header.bytes();
        output.write(bytes)?;
        let marked = write_pages(output, run, &layout, places)?;
        output.finish()?;
        let mut remarks = clock.remarks();
        remarks.extend(census.remarks());
        if marked > 0 {
            remarks.push(format!(
                "the run did not keep all pages: in {marked} places an unknown number of events is marked as lost"
            ));
        }
        remarks.push("stalls are not in the file: it holds only what the kernel recorded".into());
        Ok(Delivery {
            remarks,
            ..Delivery::of(census.pages())
        })
    }
}

/// Puts every page in its place. Returns how many follow some that the run did not keep.
fn write_pages(
    output: &mut Output,
    run: &RunReader,
    layout: &PageLayout,
    mut places: BTreeMap<Buffer, u64>,
) -> Result<u64, ExportError> {
    let size = layout.page_size();
    let (mut page, mut marked) = (vec![0; size], 0);
    let mut after_gap: BTreeSet<Buffer> = BTreeSet::new();
    for piece in run.trace_pieces()? {
        match piece? {
            TracePiece::Page(stored) => {
                let buffer = Buffer::of(&stored);
                // A page that the census left out has no place.
                let Some(place) = places
                    .get_mut(&buffer)
                    .filter(|_| stored.bytes.len() <= size)
                else {
                    continue;
                };
                page.fill(0);
                page[..stored.bytes.len()].copy_from_slice(&stored.bytes);
                if after_gap.remove(&buffer) && Page::mark_loss(layout, &mut page) {
                    marked += 1;
                }
                output.write_at(&page, *place)?;
                *place += size as u64;
            }
            TracePiece::Missing => after_gap.extend(places.keys().copied()),
            TracePiece::Turn(_) => {}
        }
    }
    Ok(marked)
}

/// The name of a buffer: that of the measured CPUs is the file's own.
fn name_of(role: TraceRole) -> &'static str {
    match role {
        TraceRole::Local => "",
        other => other.as_str(),
    }
}
