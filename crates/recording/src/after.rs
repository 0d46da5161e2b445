//! Warnings that are known only after a recording has ended.

use jitterscope_model::{MeasuringThread, ProbeResult, ProbeSettings, SourceReport, Warning};

pub(crate) fn warnings(result: &ProbeResult, settings: &ProbeSettings) -> Vec<Warning> {
    let cpu = result.cpu;
    let mut found = Vec::new();
    if let Some(why) = &result.ended_early {
        found.push(Warning::CpuEndedEarly {
            cpu,
            why: why.clone(),
        });
    }
    let count = result.own_bookkeeping;
    if count > 0 {
        let (threshold, costs) = (
            settings.threshold_ns,
            settings.clock_costs.unwrap_or_default(),
        );
        let store = costs.store_ns;
        found.push(Warning::OwnBookkeeping {
            cpu,
            count,
            threshold_ns: threshold,
            store_ns: store,
        });
    }
    let dropped = result.dropped_records.saturating_sub(count);
    if dropped > 0 {
        found.push(Warning::DroppedRecords {
            thread: MeasuringThread::Cpu(cpu),
            dropped,
        });
    }
    if result.page_faults > 0 {
        found.push(Warning::OwnPageFaults {
            thread: MeasuringThread::Cpu(cpu),
            faults: result.page_faults,
        });
    }
    found
}

/// A warning if kernel events were lost while recording.
pub(crate) fn of_sources(sources: &[SourceReport]) -> Option<Warning> {
    let lost: u64 = sources.iter().map(|source| source.lost).sum();
    (lost > 0).then_some(Warning::TraceLost { lost })
}
