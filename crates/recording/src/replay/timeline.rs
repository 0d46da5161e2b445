//! One stall of a stored run, frame by frame.

use super::ReplayError;
use crate::names::StoredNames;
use jitterscope_attribute::{Senders, TimelineOf, timeline_rows};
use jitterscope_model::{KernelEvent, Nanos, PipelineRole, Stall, ThreadAccount, TimelineRow};
use jitterscope_source::{Decoder, TraceContext};
use jitterscope_store::{RunReader, TraceRole};

/// How far before a stall its senders, and what was under way, are looked for.
const BEFORE: Nanos = Nanos(1_000_000_000);

/// The frames of a stall of a stored run.
///
/// # Errors
/// There is no raw trace of it, or it cannot be read.
pub fn stall_timeline(run: &RunReader, stall: &Stall) -> Result<Vec<TimelineRow>, ReplayError> {
    let context: TraceContext = run.trace_context()?.ok_or(ReplayError::NoTrace)?;
    let manifest = run.manifest();
    let mut decoder = Decoder::new(&context)?;
    let names = StoredNames::new(&context);
    let from = stall.start - manifest.rate.ticks(BEFORE);
    let (mut events, mut senders): (Vec<KernelEvent>, Senders) = (Vec::new(), Senders::new(manifest.rate));
    if manifest.wakeups.is_empty() {
        manifest.results.iter().for_each(|result| senders.spins(result.tid));
    }
    let measures = |tid| manifest.results.iter().any(|result| result.tid == tid);
    let produces =
        |account: &&ThreadAccount| account.role.as_deref() == Some(PipelineRole::Producer.as_str());
    let of = TimelineOf {
        stall,
        spins: manifest.wakeups.is_empty() && measures(stall.victim.tid),
        producer: manifest.threads.iter().find(produces).map(|account| account.tid),
    };
    let mut kept = false;
    for page in run.trace_pages(from, stall.end)? {
        // Pages that are damaged end early; what was read of them counts.
        let _ = decoder.page(page.cpu, &page.bytes, |event| {
            senders.note(&event);
            if page.role == TraceRole::Local {
                events.push(event);
            }
        });
        kept |= page.role == TraceRole::Local && page.cpu == stall.cpu;
    }
    if !kept && !manifest.trace.complete {
        return Err(ReplayError::NotKept { limit_mib: manifest.trace.limit_bytes >> 20 });
    }
    events.sort_by_key(|event| event.time);
    Ok(timeline_rows(&of, &events, &senders, manifest.rate, &names))
}
