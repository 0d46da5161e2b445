//! Reasons why a quantity may be higher than a run shows: a needed source was missing, or trace was lost.

use super::condition::Quantity;
use super::pattern::{kind_and_rest, matches};
use super::reason::{GateReason, GateSource, SourceDoubt};
use crate::RunSummary;
use jitterscope_model::{CulpritKind, Doubt, EventGrain, SourceProblem, SourceStatus, Verdict};

/// What a run could not see, by source.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Unseen {
    pub(crate) lost: Option<GateReason>,
    events: Option<GateReason>,
    /// What is missing from the events that show which thread or interrupt had a CPU.
    turns: Option<GateReason>,
    symbols: Option<GateReason>,
    smi: Option<GateReason>,
    told_by_events: bool,
}

impl Unseen {
    /// The blind spots of a run.
    pub(crate) fn of(run: &RunSummary) -> Unseen {
        Unseen {
            lost: lost(run),
            events: missing(GateSource::Events, run),
            turns: missing_turns(run),
            symbols: missing(GateSource::Symbols, run),
            smi: missing(GateSource::Smi, run),
            told_by_events: is_told_by_events(run),
        }
    }

    /// The blind spots of either of two runs.
    pub(crate) fn or(self, other: Unseen) -> Unseen {
        Unseen {
            lost: self.lost.or(other.lost),
            events: self.events.or(other.events),
            turns: self.turns.or(other.turns),
            symbols: self.symbols.or(other.symbols),
            smi: self.smi.or(other.smi),
            told_by_events: self.told_by_events || other.told_by_events,
        }
    }

    /// Why the true quantity may be higher than the measured one.
    pub(super) fn doubt(&self, quantity: &Quantity) -> Option<GateReason> {
        let needed = sources(quantity, self.told_by_events);
        if needed.contains(&GateSource::Events)
            && let Some(why) = &self.lost
        {
            return Some(why.clone());
        }
        let of = |source| match source {
            // Waits follow from the events that show who had the CPU.
            GateSource::Events
                if matches!(quantity, Quantity::Wait(_) | Quantity::Max | Quantity::Lost) =>
            {
                self.turns.clone()
            }
            GateSource::Events => self.events.clone(),
            GateSource::Symbols => self.symbols.clone(),
            GateSource::Smi => self.smi.clone(),
        };
        needed.into_iter().find_map(of)
    }
}

/// The sources without which a quantity may read too low.
fn sources(quantity: &Quantity, told_by_events: bool) -> Vec<GateSource> {
    match quantity {
        Quantity::Wait(_) if told_by_events => vec![GateSource::Events],
        // The probe itself measures these.
        Quantity::Wait(_)
        | Quantity::Stall(_)
        | Quantity::Late(_)
        | Quantity::Message(_)
        | Quantity::Stolen
        | Quantity::Stalls
        | Quantity::Coverage
        // Its own bounds contain what is not known.
        | Quantity::Blocked(_)
        | Quantity::Worse(_) => Vec::new(),
        Quantity::Max if told_by_events => vec![GateSource::Events],
        Quantity::Max => Vec::new(),
        // Events account for the time behind these: fewer events make them read higher.
        Quantity::Lost | Quantity::Unexplained | Quantity::Unresolved | Quantity::Hypervisor => {
            vec![GateSource::Events]
        }
        Quantity::Firmware => vec![GateSource::Events, GateSource::Smi],
        Quantity::Culprit(pattern) => {
            let mut all = vec![GateSource::Events];
            let (of, name) = kind_and_rest(pattern);
            let means = |kind: CulpritKind| of == Some(kind) || matches(pattern, kind.as_str());
            // A kind is known without symbol names, and unexplained time is counted even where firmware's is not.
            let named = matches!(
                of,
                Some(CulpritKind::Kworker | CulpritKind::Timer | CulpritKind::Ipi)
            );
            if named || !CulpritKind::ALL.into_iter().any(means) {
                all.push(GateSource::Symbols);
            }
            let smi = of.is_none() && matches(name, Verdict::Smi.as_str());
            if (means(CulpritKind::Firmware) || smi) && !means(CulpritKind::Unresolved) {
                all.push(GateSource::Smi);
            }
            all
        }
    }
}

/// Whether the longest wait comes from kernel events: no probe measured it, and no messages were timed.
fn is_told_by_events(run: &RunSummary) -> bool {
    let timed = run.pipeline.iter().flat_map(|pipeline| &pipeline.consumers);
    run.probe.total.max_ns.is_none()
        && !timed.into_iter().any(|times| times.from_intended.count > 0)
}

/// Checks the proof of the run's evidence on culprits; without it no condition on them is decided.
///
/// # Errors
/// The evidence fails its proof.
pub(super) fn proven(run: &RunSummary) -> Result<(), GateReason> {
    if run.trust.holds() {
        return Ok(());
    }
    Err(GateReason::Unproven(run.trust.doubts.clone()))
}

/// Checks that no verdicts were withheld; otherwise unexplained time says nothing about the machine.
///
/// # Errors
/// Some were withheld.
pub(super) fn nothing_withheld(run: &RunSummary) -> Result<(), GateReason> {
    match run.trust.doubts.as_slice() {
        [] => Ok(()),
        doubts => Err(GateReason::Unproven(doubts.to_vec())),
    }
}

/// Why the true quantity may be higher than the measured one.
pub(super) fn doubts(quantity: &Quantity, run: &RunSummary) -> Option<GateReason> {
    Unseen::of(run).doubt(quantity)
}

/// Whether longer ones than the observed maximum may have been hidden.
pub(crate) fn hides_longer(run: &RunSummary) -> bool {
    doubts(&Quantity::Max, run).is_some()
}

fn lost(run: &RunSummary) -> Option<GateReason> {
    let withheld = run.trust.doubts.iter().filter(|doubt| !doubt.is_of_all());
    let withheld: Vec<Doubt> = withheld.copied().collect();
    if !withheld.is_empty() {
        return Some(GateReason::Unproven(withheld));
    }
    match run.trust.lost_records {
        Some(0) => {}
        Some(lost) => return Some(GateReason::EventsLost(lost)),
        None => return Some(GateReason::RecorderKilled),
    }
    if run.trust.dropped_records > 0 {
        return Some(GateReason::StallsUnrecorded(run.trust.dropped_records));
    }
    let classes = run
        .attribution
        .iter()
        .flat_map(|attribution| &attribution.unexplained.classes);
    let mut verdicts = classes.map(|row| row.subject.as_verdict());
    verdicts
        .any(|verdict| verdict == Some(Verdict::TraceDataLost))
        .then_some(GateReason::LostWithinStalls)
}

/// As [`missing`] for events, but ignores coarse recording: it leaves out only what was done with a CPU.
fn missing_turns(run: &RunSummary) -> Option<GateReason> {
    let source = GateSource::Events;
    match missing(source, run)? {
        GateReason::Source {
            source,
            why: SourceDoubt::Limited(mut problems),
        } => {
            let coarse = SourceProblem::EventsNotAsked {
                grain: EventGrain::Coarse,
            };
            let is_only_coarse =
                !problems.is_empty() && problems.iter().all(|problem| *problem == coarse);
            problems.retain(|problem| *problem != coarse);
            let why = SourceDoubt::Limited(problems);
            (!is_only_coarse).then_some(GateReason::Source { source, why })
        }
        other => Some(other),
    }
}

/// Why a source was incomplete.
fn missing(source: GateSource, run: &RunSummary) -> Option<GateReason> {
    let is_smi = source == GateSource::Smi;
    let why = match run.sources.iter().find(|known| known.name == source.name()) {
        Some(known) if known.status != SourceStatus::Available => {
            SourceDoubt::Limited(known.problems.clone())
        }
        // An attributed run had events and names; older runs list neither.
        None if !is_smi => return None,
        None => SourceDoubt::NotCounted,
        Some(_) if is_smi && run.run.hypervisor.is_some() => SourceDoubt::VirtualMachine,
        Some(_) => return None,
    };
    Some(GateReason::Source { source, why })
}
