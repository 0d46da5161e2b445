//! Attributes the stalls of spinning or sleeping probes as their recorder did.

use super::steps::StoredPages;
use super::{EachStall, ReplayError, Replayed};
use crate::gaps::{GapAttribution, hints_of};
use jitterscope_attribute::{AttributorSettings, EdgeCosts, NameResolver};
use jitterscope_model::{
    AttributedStall, Comm, CpuId, DrainTurn, Gap, PutInOrder, Record, RunManifest, Source,
    SourceTurn, Stall, StallId, ThreadRef, Ticks, WarmUpTurn,
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
    let mut source = StoredPages::new(run, context)?;
    let mut turns = ProbeTurns::new(run.manifest());
    let mut stalls = run.stalls()?.peekable();
    while let Some(step) = source.turn(&mut (), &mut |record| turns.take(record))? {
        let turn = match step {
            SourceTurn::Kept(turn) => turn,
            SourceTurn::Missing => {
                turns.begin(None);
                continue;
            }
            SourceTurn::Open | SourceTurn::Cut => continue,
        };
        let mut own = Vec::new();
        // A row that cannot be read ends the replay.
        while let Some(stall) =
            stalls.next_if(|row| row.as_ref().map_or(true, |stall| stall.id.0 < turn.stalls))
        {
            own.push(stall?);
        }
        let seen_until = source.seen_until();
        let breaks = &source.breaks;
        let is_missing = |stall: &Stall| breaks.touch(Some(stall.cpu), stall.start, stall.end);
        let rows = turns.turn((*turn, seen_until), own, &source.names, &is_missing);
        for (stall, attribution) in rows {
            each(&stall, attribution);
        }
    }
    for stall in stalls {
        turns.replayed.stalls += 1;
        turns.replayed.without_trace += 1;
        each(&stall?, None);
    }
    turns.finish();
    let mut replayed = turns.replayed;
    replayed.events_in_gaps =
        (!source.breaks.any()).then(|| turns.gaps.attributor.events_in_gaps());
    Ok(replayed)
}

/// Attributes the stalls of probes turn by turn.
pub(crate) struct ProbeTurns<'a> {
    manifest: &'a RunManifest,
    pub(crate) gaps: GapAttribution,
    replayed: Replayed,
    /// Whether a part of the warm-up, from which the recorder learned, was not kept.
    begun_late: bool,
    /// Whether its first turn was kept.
    begun: bool,
}

impl<'a> ProbeTurns<'a> {
    /// For the run of this manifest. Its costs of edges count if its first turn is not number 0.
    pub(crate) fn new(manifest: &'a RunManifest) -> ProbeTurns<'a> {
        let settings = AttributorSettings {
            rate: manifest.rate,
            virtual_machine: manifest.host.hypervisor.is_some(),
            measured: manifest.probe.cpus.len(),
        };
        let mut gaps = GapAttribution::new(settings, !manifest.wakeups.is_empty());
        gaps.threshold(manifest.rate.ticks(manifest.probe.threshold_ns));
        ProbeTurns {
            manifest,
            gaps,
            replayed: Replayed::default(),
            begun_late: false,
            begun: false,
        }
    }

    pub(crate) fn take(&mut self, record: Record<'_>) {
        self.gaps.take(record);
    }

    /// A turn begins; `None` if it is missing.
    fn begin(&mut self, number: Option<u64>) {
        // A part of a measurement begins with a later turn.
        let is_late = number.is_none_or(|number| !self.begun && number > 0);
        if is_late && self.replayed.stalls == 0 && !self.begun_late {
            self.begun_late = true;
            let attributor = &mut self.gaps.attributor;
            attributor.set_costs(EdgeCosts::from_rows(&self.manifest.edge_costs));
            attributor.set_sleeping_works(&self.manifest.sleeping_works);
        }
        self.begun |= number.is_some();
    }

    /// A turn whose records were taken, and the time until which they are complete. Returns its stalls, in order of
    /// their ids; those that `is_missing` have no attribution.
    pub(crate) fn turn(
        &mut self,
        (turn, seen_until): (DrainTurn, Option<Ticks>),
        stalls: Vec<Stall>,
        names: &dyn NameResolver,
        is_missing: &dyn Fn(&Stall) -> bool,
    ) -> Vec<AttributedStall> {
        self.begin(Some(turn.number));
        let gaps = &mut self.gaps;
        gaps.attributor.quotas(&turn, turn.measuring);
        gaps.pages_done(seen_until, hints_of(self.manifest.probe.cpus.iter(), &turn));
        let DrainTurn {
            measuring, warm_up, ..
        } = turn;
        let mut probes: BTreeMap<CpuId, ProbeTurn> = BTreeMap::new();
        for of in warm_up {
            let cpu = of.cpu;
            probes.entry(cpu).or_default().warm_up = Some(of);
        }
        for stall in stalls {
            probes.entry(stall.cpu).or_default().stalls.push(stall);
        }
        announce(gaps, &probes);
        // A recorder processes probes in order of their CPUs.
        let mut rows = Vec::new();
        for (cpu, ProbeTurn { warm_up, stalls }) in probes {
            for gap in warm_up.iter().flat_map(WarmUpTurn::gaps) {
                let stall = warm_up_stall(self.manifest, cpu, gap);
                if measuring || self.begun_late {
                    gaps.attributor.pass_over(&stall);
                } else {
                    gaps.attributor.learn(&stall, names);
                }
            }
            for stall in stalls {
                if is_missing(&stall) {
                    gaps.attributor.pass_over(&stall);
                    self.replayed.without_trace += 1;
                    rows.push((stall, None));
                } else {
                    let attribution = gaps.attribute(&stall, names);
                    rows.push((stall, Some(attribution)));
                }
            }
        }
        self.replayed.stalls += rows.len() as u64;
        // Stalls of missing turns arrive together with these.
        rows.order_by_key(|(stall, _)| stall.id);
        rows
    }

    /// Every probe has ended.
    pub(crate) fn finish(&mut self) {
        let results = self.manifest.results.iter();
        let ends: Vec<_> = results.map(|result| (result.cpu, result.end)).collect();
        self.gaps.attributor.finish(&ends);
    }
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
