//! One stall of a stored run, frame by frame.

use super::ReplayError;
use crate::names::StoredNames;
use jitterscope_attribute::{Senders, timeline_rows};
use jitterscope_model::{KernelEvent, Nanos, Stall, TimelineRow};
use jitterscope_store::{RunReader, TraceRole};
use jitterscope_trace::{Decoder, TraceContext};

/// How far before a stall its senders are looked for.
const SENDERS_BEFORE: Nanos = Nanos(1_000_000_000);

/// The frames of a stall of a stored run.
///
/// # Errors
/// There is no raw trace of it, or it cannot be read.
pub fn stall_timeline(run: &RunReader, stall: &Stall) -> Result<Vec<TimelineRow>, ReplayError> {
    let context: TraceContext = run.trace_context()?.ok_or(ReplayError::NoTrace)?;
    let manifest = run.manifest();
    let mut decoder = Decoder::new(&context)?;
    let names = StoredNames::new(&context);
    let from = stall.start - manifest.rate.ticks(SENDERS_BEFORE);
    let (mut events, mut senders): (Vec<KernelEvent>, Senders) = (Vec::new(), Senders::default());
    if manifest.wakeups.is_empty() {
        manifest.results.iter().for_each(|result| senders.spins(result.tid));
    }
    let mut kept = false;
    for page in run.trace_pages(from, stall.end)? {
        let local = page.role == TraceRole::Local && page.cpu == stall.cpu;
        // Pages that are damaged end early; what was read of them counts.
        let _ = decoder.page(page.cpu, &page.bytes, |event| match page.role {
            TraceRole::Senders => senders.note(&event),
            TraceRole::Local if local && stall.contains(event.time) => events.push(event),
            TraceRole::Local => {}
        });
        kept |= local;
    }
    if !kept && !manifest.trace.complete {
        return Err(ReplayError::NotKept { limit_mib: manifest.trace.limit_bytes >> 20 });
    }
    events.sort_by_key(|event| event.time);
    Ok(timeline_rows(stall, &events, &senders, manifest.rate, &names))
}
