//! Attributes the stalls of probes turn by turn, live or in a replay.

use jitterscope_attribute::{Attributor, AttributorSettings, NameResolver, OutsideHints};
use jitterscope_model::{
    Attribution, CpuId, DrainTurn, Evidence, Nanos, Record, Setup, Stall, TickRate, Ticks,
};
use rustc_hash::FxHashMap;

/// How long events are kept for late wake-ups: attribution looks at what ran at the due time. The stall and its waits
/// are shorter than this except in the worst outages, of which only the end is then reported.
const KEPT_FOR_WAKEUPS: Nanos = Nanos(3_000_000_000);

/// Attributes the stalls of probes that spin or sleep.
pub(crate) struct GapAttribution {
    pub(crate) attributor: Attributor,
    /// Hints of the current turn.
    hints: FxHashMap<CpuId, OutsideHints>,
    /// Stolen time and unrecorded faults that no stall of the turn has used up yet.
    left: FxHashMap<CpuId, OutsideHints>,
    /// How long events are kept for wake-ups; `None` if the victims spin.
    wakeups: Option<Ticks>,
}

impl GapAttribution {
    pub(crate) fn new(settings: AttributorSettings, wakeups: bool) -> GapAttribution {
        let rate: TickRate = settings.rate;
        GapAttribution {
            attributor: Attributor::new(settings),
            hints: FxHashMap::default(),
            left: FxHashMap::default(),
            wakeups: wakeups.then(|| rate.ticks(KEPT_FOR_WAKEUPS)),
        }
    }

    /// Sets the stall threshold. With a probe that sleeps, the position of events proves nothing.
    pub(crate) fn threshold(&mut self, threshold: Ticks) {
        if !self.wakeups() {
            self.attributor.threshold(threshold);
        }
    }

    /// Whether the victims sleep and wake.
    fn wakeups(&self) -> bool {
        self.wakeups.is_some()
    }

    pub(crate) fn take(&mut self, record: Record<'_>) {
        match record {
            Record::Sender(event) => self.attributor.sender_event(event),
            Record::Local(event) => self.attributor.event(event),
            Record::Lost(cpu, from, to) => self.attributor.lost(cpu, from, to),
            Record::SendersLost(from, to) => self.attributor.senders_lost(from, to),
            Record::Disturbed(cpus, from, to) => self.attributor.disturbed(cpus, from, to),
            Record::Setup(Setup::Measure { from, until }) => self.attributor.measure(*from, *until),
            // No probe sleeps for a reason of its own.
            Record::Setup(_) | Record::Stack(_) => {}
        }
    }

    /// All pages of the turn were handed over. `seen_until`: the earliest of the CPUs' last records.
    pub(crate) fn pages_done(
        &mut self,
        seen_until: Option<Ticks>,
        hints: FxHashMap<CpuId, OutsideHints>,
    ) {
        if let (Some(kept), Some(last)) = (self.wakeups, seen_until) {
            self.attributor.forget(last - kept);
        }
        self.attributor.forget_names();
        self.left.clone_from(&hints);
        self.hints = hints;
    }

    pub(crate) fn attribute(&mut self, stall: &Stall, names: &dyn NameResolver) -> Attribution {
        if self.wakeups() {
            return self.attributor.attribute_wakeup(stall, names);
        }
        let hints = self.left.entry(stall.cpu).or_default();
        let attribution = self.attributor.attribute(stall, hints, names);
        // A counted amount explains at most that amount.
        for part in &attribution.parts {
            match part.evidence {
                Evidence::StealCount | Evidence::StealCountBeforeInterrupt => {
                    hints.stolen = hints.stolen.saturating_sub(part.net);
                }
                Evidence::FaultCount => hints.faults = hints.faults.saturating_sub(1),
                _ => {}
            }
        }
        attribution
    }

    /// Adds the turn's hints to the stored turn.
    pub(crate) fn keep_hints(&self, turn: DrainTurn) -> DrainTurn {
        let smi = self.hints.values().find_map(|hints| hints.smi);
        let mut kept = DrainTurn { smi, ..turn };
        for (cpu, hints) in &self.hints {
            if !hints.untraced.is_empty() {
                kept.untraced.push((*cpu, hints.untraced.clone()));
            }
            if hints.stolen > Nanos::ZERO {
                kept.stolen.push((*cpu, hints.stolen));
            }
            if hints.faults > 0 {
                kept.faults.push((*cpu, hints.faults));
            }
        }
        kept
    }
}

/// The hints stored with a turn.
pub(crate) fn hints_of(
    measured: impl Iterator<Item = CpuId>,
    turn: &DrainTurn,
) -> FxHashMap<CpuId, OutsideHints> {
    let of = |cpu| OutsideHints {
        smi: turn.smi,
        untraced: find(&turn.untraced, cpu).unwrap_or_default(),
        stolen: find(&turn.stolen, cpu).unwrap_or_default(),
        faults: find(&turn.faults, cpu).unwrap_or_default(),
    };
    measured.map(|cpu| (cpu, of(cpu))).collect()
}

fn find<T: Clone>(rows: &[(CpuId, T)], cpu: CpuId) -> Option<T> {
    rows.iter()
        .find(|(of, _)| *of == cpu)
        .map(|(_, value)| value.clone())
}
