//! Attributes the stalls of spinning or sleeping probes as their recorder did.

use super::steps::StoredPages;
use super::{EachStall, ReplayError, Replayed};
use crate::gaps::{GapAttribution, hints_of};
use jitterscope_attribute::{AttributorSettings, EdgeCosts};
use jitterscope_model::{
    Comm, CpuId, DrainTurn, Gap, PutInOrder, RunManifest, Source, SourceTurn, Stall, StallId,
    ThreadRef, WarmUpTurn,
};
use jitterscope_source::TraceContext;
use jitterscope_store::RunReader;
use std::collections::BTreeMap;

/// The reports of one probe in a turn.
#[derive(Default)]
struct ProbeTurn {
    warm_up: Option<WarmUpTurn>,
    stalls: Vec<Stall>,
}

pub(super) fn probes(
    run: &RunReader,
    context: &TraceContext,
    each: EachStall<'_>,
) -> Result<Replayed, ReplayError> {
    let manifest = run.manifest();
    let measured = &manifest.probe.cpus;
    let mut source = StoredPages::new(run, context)?;
    let settings = AttributorSettings {
        rate: manifest.rate,
        virtual_machine: manifest.host.hypervisor.is_some(),
        measured: measured.len(),
    };
    let mut gaps = GapAttribution::new(settings, !manifest.wakeups.is_empty());
    gaps.threshold(manifest.rate.ticks(manifest.probe.threshold_ns));
    let mut replayed = Replayed::default();
    let mut stalls = run.stalls()?.peekable();
    // Whether a part of the warm-up, from which the recorder learned, was not kept.
    let mut begun_late = false;
    // Whether its first turn was kept.
    let mut begun = false;
    while let Some(step) = source.turn(&mut (), &mut |record| gaps.take(record))? {
        let turn = match step {
            SourceTurn::Kept(turn) => Some(turn),
            SourceTurn::Missing => None,
            SourceTurn::Open | SourceTurn::Cut => continue,
        };
        // A part of a measurement begins with a later turn.
        let is_late = turn.as_ref().is_none_or(|turn| !begun && turn.number > 0);
        if is_late && replayed.stalls == 0 && !begun_late {
            begun_late = true;
            gaps.attributor = gaps
                .attributor
                .with_costs(EdgeCosts::from_rows(&manifest.edge_costs))
                .with_sleeping_works(&manifest.sleeping_works);
        }
        let Some(turn) = turn else {
            continue;
        };
        begun = true;
        gaps.attributor.quotas(&turn, turn.measuring);
        gaps.pages_done(source.seen_until(), hints_of(measured.iter(), &turn));
        let DrainTurn {
            measuring,
            warm_up,
            stalls: until,
            ..
        } = *turn;
        let mut probes: BTreeMap<CpuId, ProbeTurn> = BTreeMap::new();
        for of in warm_up {
            let cpu = of.cpu;
            probes.entry(cpu).or_default().warm_up = Some(of);
        }
        // A row that cannot be read ends the replay.
        while let Some(stall) =
            stalls.next_if(|row| row.as_ref().map_or(true, |stall| stall.id.0 < until))
        {
            let stall = stall?;
            probes.entry(stall.cpu).or_default().stalls.push(stall);
        }
        announce(&mut gaps, &probes);
        // A recorder processes probes in order of their CPUs.
        let mut rows = Vec::new();
        for (cpu, ProbeTurn { warm_up, stalls }) in probes {
            for gap in warm_up.iter().flat_map(WarmUpTurn::gaps) {
                let stall = warm_up_stall(manifest, cpu, gap);
                if measuring || begun_late {
                    gaps.attributor.pass_over(&stall);
                } else {
                    gaps.attributor.learn(&stall, &source.names);
                }
            }
            for stall in stalls {
                if source.breaks.touch(Some(stall.cpu), stall.start, stall.end) {
                    gaps.attributor.pass_over(&stall);
                    replayed.without_trace += 1;
                    rows.push((stall, None));
                } else {
                    let attribution = gaps.attribute(&stall, &source.names);
                    rows.push((stall, Some(attribution)));
                }
            }
        }
        replayed.stalls += rows.len() as u64;
        // Stalls of missing turns arrive together with these.
        rows.order_by_key(|(stall, _)| stall.id);
        for (stall, attribution) in rows {
            each(&stall, attribution);
        }
    }
    for stall in stalls {
        replayed.stalls += 1;
        replayed.without_trace += 1;
        each(&stall?, None);
    }
    let ends: Vec<_> = manifest
        .results
        .iter()
        .map(|result| (result.cpu, result.end))
        .collect();
    gaps.attributor.finish(&ends);
    replayed.events_in_gaps = (!source.breaks.any()).then(|| gaps.attributor.events_in_gaps());
    Ok(replayed)
}

/// Announces all gaps of a turn before any is attributed.
fn announce(gaps: &mut GapAttribution, probes: &BTreeMap<CpuId, ProbeTurn>) {
    for (cpu, ProbeTurn { warm_up, stalls }) in probes {
        for gap in warm_up.iter().flat_map(WarmUpTurn::gaps) {
            gaps.attributor.announce(*cpu, gap);
        }
        if let Some(from) = warm_up.as_ref().and_then(|warm_up| warm_up.begins) {
            gaps.attributor.begin(*cpu, from);
        }
        for stall in stalls {
            gaps.attributor.announce(
                *cpu,
                Gap {
                    start: stall.start,
                    length: stall.length(),
                },
            );
        }
    }
}

fn warm_up_stall(manifest: &RunManifest, cpu: CpuId, gap: Gap) -> Stall {
    let tid = manifest
        .results
        .iter()
        .find(|result| result.cpu == cpu)
        .map_or(0, |result| result.tid);
    let victim = ThreadRef {
        tid,
        comm: Comm::default(),
    };
    Stall {
        id: StallId(0),
        cpu,
        victim,
        start: gap.start,
        end: gap.end(),
    }
}
