//! What turned out to limit a recording.

use crate::warnings::Circumstance;
use jitterscope_model::{ProbeResult, ProbeSettings, SourceReport};

/// Circumstances of one CPU's measurement.
pub(crate) fn circumstances(result: &ProbeResult, settings: &ProbeSettings) -> Vec<Circumstance> {
    let cpu = result.cpu;
    let mut found = Vec::new();
    if let Some(why) = &result.ended_early {
        found.push(Circumstance::EndedEarly { cpu, why: why.clone() });
    }
    let count = result.own_bookkeeping;
    if count > 0 {
        let (threshold, costs) = (settings.threshold_ns, settings.clock_costs.unwrap_or_default());
        let store = costs.store_ns;
        found.push(Circumstance::OwnBookkeeping { cpu, count, threshold, store });
    }
    let dropped = result.dropped_records.saturating_sub(count);
    if dropped > 0 {
        found.push(Circumstance::DroppedRecords { cpu, dropped });
    }
    if result.page_faults > 0 {
        found.push(Circumstance::PageFaults { cpu, faults: result.page_faults });
    }
    found
}

/// Circumstances of the kernel events.
pub(crate) fn of_evidence(sources: &[SourceReport], attributed: bool) -> Option<Circumstance> {
    let lost: u64 = sources.iter().map(|source| source.lost).sum();
    (attributed && lost > 0).then_some(Circumstance::TraceLost { lost })
}
