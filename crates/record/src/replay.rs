//! A stored run again, from the raw trace that it kept.

use crate::names::StoredNames;
use jitterscope_attribute::{
    Attributor, AttributorSettings, EdgeCosts, OutsideHints, Senders, TimelineRow, timeline_rows,
};
use jitterscope_model::{Attribution, Gap, KernelEvent, Nanos, Stall, Ticks};
use jitterscope_store::{RunReader, StoreError, TraceRole};
use jitterscope_trace::{ContextError, Decoder, TraceContext};

/// How far before a stall its senders are looked for.
const SENDERS_BEFORE: Nanos = Nanos(1_000_000_000);

/// Why a stall cannot be shown as a timeline.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The run cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The run's description of its pages cannot be used.
    #[error("the run's trace cannot be decoded: {0}")]
    Context(#[from] ContextError),
    /// The run was recorded without kernel events.
    #[error("this run has no kernel events: it was recorded without tracefs")]
    NoTrace,
    /// There was a trace, of which this part was not kept.
    #[error(
        "the raw trace around this stall was not kept; raise --trace-limit (now {limit_mib} MiB) when recording"
    )]
    NotKept {
        /// The limit that applied.
        limit_mib: u64,
    },
}

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

/// Attributes every stall of a run again, in order, from its raw trace: with the attribution of this
/// version, on any machine. Counters that were read beside the trace (SMIs, interrupts without
/// tracepoints) are not kept and play no part.
///
/// # Errors
/// The run did not keep its whole trace, or it cannot be read.
pub fn reattribute(run: &RunReader, sink: &mut dyn FnMut(Attribution)) -> Result<(), ReplayError> {
    let context: TraceContext = run.trace_context()?.ok_or(ReplayError::NoTrace)?;
    let manifest = run.manifest();
    if !manifest.trace.complete {
        return Err(ReplayError::NotKept { limit_mib: manifest.trace.limit_bytes >> 20 });
    }
    let names = StoredNames::new(&context);
    let wakeups = !manifest.wakeups.is_empty();
    let mut decoder = Decoder::new(&context)?;
    let settings = AttributorSettings {
        rate: manifest.rate,
        virtual_machine: manifest.host.hypervisor.is_some(),
        measured: manifest.results.len(),
    };
    let mut attributor = Attributor::new(settings)
        .with_costs(EdgeCosts::from_rows(&manifest.edge_costs))
        .with_sleeping_works(&manifest.sleeping_works);
    let mut pages = run.trace_pages(Ticks(0), Ticks(u64::MAX))?.into_iter().peekable();
    for stall in run.stalls()? {
        let stall = stall?;
        // As far as the live recorder had read when it attributed this stall, or a little less.
        while let Some(page) = pages.next_if(|page| page.first <= stall.end) {
            let _ = decoder.page(page.cpu, &page.bytes, |event| match page.role {
                TraceRole::Senders => attributor.sender_event(&event),
                TraceRole::Local => attributor.event(event),
            });
        }
        attributor.announce(stall.cpu, Gap { start: stall.start, length: stall.length() });
        sink(if wakeups {
            attributor.attribute_wakeup(&stall)
        } else {
            attributor.attribute(&stall, &OutsideHints::default(), &names)
        });
    }
    Ok(())
}
