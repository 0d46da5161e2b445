//! Which CPUs' switches a file has: of any other CPU it does not show who ran there.

use super::error::ImportError;
use super::opened::Opened;
use super::pages::FilePagesError;
use super::shares::described;
use crate::feed::PageFeed;
use jitterscope_model::{CpuSet, EventKind, Record, Ticks, TraceRole};
use jitterscope_source::TraceContext;
use std::sync::atomic::{AtomicBool, Ordering};

/// The CPUs whose switches the file has; `None` if these are all CPUs with records. An event is on or off for a whole
/// buffer, so the buffer of the measured CPUs has the switches of each of its CPUs. The buffer of senders has them only
/// if it came from an import that watched other CPUs.
pub(super) fn switched(
    opened: &Opened,
    context: &TraceContext,
    stop: &AtomicBool,
) -> Result<Option<CpuSet>, ImportError> {
    let mut switched = opened.cpus();
    let mut feed = PageFeed::new(context, &CpuSet::new())
        .map_err(|error| described(opened, FilePagesError::from(error)))?;
    let mut without = false;
    for stream in &opened.streams {
        if stream.role != TraceRole::Senders || switched.contains(stream.cpu) {
            continue;
        }
        let mut found = false;
        let mut pages = opened.pages(stream);
        while let Some(bytes) = pages.peek()? {
            if stop.load(Ordering::Relaxed) {
                return Err(ImportError::Interrupted);
            }
            feed.page(
                (stream.role, stream.cpu),
                bytes,
                Ticks(u64::MAX),
                |record| {
                    let switch = |kind: &EventKind| matches!(kind, EventKind::SchedSwitch { .. });
                    found |= matches!(record, Record::Sender(event) if switch(&event.kind));
                },
            );
            if found {
                break;
            }
            pages.pass();
        }
        match found {
            true => _ = switched.insert(stream.cpu),
            false => without = true,
        }
    }
    Ok(without.then_some(switched))
}
