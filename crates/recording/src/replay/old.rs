//! Runs of before recorders kept their turns: their pages are all there is.

use super::{EachStall, ReplayError, Replayed};
use crate::names::StoredNames;
use jitterscope_attribute::{Attributor, AttributorSettings, EdgeCosts, OutsideHints};
use jitterscope_model::{Gap, Ticks};
use jitterscope_source::{Decoder, TraceContext};
use jitterscope_store::{RunReader, TraceRole};

/// Attributes the stalls of probes in order of time. What was sent before the measurement, and counters that
/// were read beside the trace, play no part.
pub(super) fn probes(
    run: &RunReader,
    context: &TraceContext,
    each: EachStall<'_>,
) -> Result<Replayed, ReplayError> {
    let manifest = run.manifest();
    if !manifest.trace.complete {
        return Err(ReplayError::NotKept {
            limit_mib: manifest.trace.limit_bytes >> 20,
        });
    }
    let mut replayed = Replayed::default();
    let names = StoredNames::new(context);
    let wakeups = !manifest.wakeups.is_empty();
    let mut decoder = Decoder::new(context)?;
    let settings = AttributorSettings {
        rate: manifest.rate,
        virtual_machine: manifest.host.hypervisor.is_some(),
        measured: manifest.results.len(),
    };
    let mut attributor = Attributor::new(settings)
        .with_costs(EdgeCosts::from_rows(&manifest.edge_costs))
        .with_sleeping_works(&manifest.sleeping_works);
    let mut pages = run
        .trace_pages(Ticks(0), Ticks(u64::MAX))?
        .into_iter()
        .peekable();
    for stall in run.stalls()? {
        let stall = stall?;
        // As far as the live recorder had read when it attributed this stall, or a little less.
        while let Some(page) = pages.next_if(|page| page.first <= stall.end) {
            let _ = decoder.page(page.cpu, &page.bytes, |event| match page.role {
                TraceRole::Senders => attributor.sender_event(&event),
                TraceRole::Local => attributor.event(&event),
                TraceRole::Graph => {}
            });
        }
        attributor.announce(
            stall.cpu,
            Gap {
                start: stall.start,
                length: stall.length(),
            },
        );
        let attribution = if wakeups {
            attributor.attribute_wakeup(&stall, &names)
        } else {
            attributor.attribute(&stall, &OutsideHints::default(), &names)
        };
        replayed.stalls += 1;
        each(&stall, Some(attribution));
    }
    Ok(replayed)
}
