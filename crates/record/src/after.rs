//! What turned out to limit a recording.

use crate::warnings::Circumstance;
use jitterscope_model::{ProbeResult, SourceReport};

/// Circumstances of one CPU's measurement.
pub(crate) fn circumstances(result: &ProbeResult) -> Vec<Circumstance> {
    let cpu = result.cpu;
    let mut found = Vec::new();
    if let Some(why) = &result.ended_early {
        found.push(Circumstance::EndedEarly { cpu, why: why.clone() });
    }
    if result.dropped_records > 0 {
        found.push(Circumstance::DroppedRecords { cpu, dropped: result.dropped_records });
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
