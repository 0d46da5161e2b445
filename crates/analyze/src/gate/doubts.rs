//! Why a quantity may be higher than a run tells: a source that it needs was missing, or trace was lost.

use super::condition::Quantity;
use super::pattern::{kind_and_rest, matches};
use crate::RunSummary;
use jitterscope_model::{CulpritKind, SourceStatus, Verdict, doubts_text};

/// The source of all that is told of culprits, threads and watched CPUs.
const EVENTS: &str = "tracefs";
/// The source of functions' names.
const SYMBOLS: &str = "symbols";
/// The source that tells firmware from whatever else is below the kernel.
const SMI: &str = "smi";

/// What a run could not see, by what it takes to be seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Unseen {
    /// Kernel events were lost.
    pub(crate) lost: Option<String>,
    events: Option<String>,
    symbols: Option<String>,
    smi: Option<String>,
    told_by_events: bool,
}

impl Unseen {
    /// That of a run.
    pub(crate) fn of(run: &RunSummary) -> Unseen {
        Unseen {
            lost: lost(run),
            events: missing(EVENTS, run),
            symbols: missing(SYMBOLS, run),
            smi: missing(SMI, run),
            told_by_events: is_told_by_events(run),
        }
    }

    /// What either of two could not see.
    pub(crate) fn or(self, other: Unseen) -> Unseen {
        Unseen {
            lost: self.lost.or(other.lost),
            events: self.events.or(other.events),
            symbols: self.symbols.or(other.symbols),
            smi: self.smi.or(other.smi),
            told_by_events: self.told_by_events || other.told_by_events,
        }
    }

    /// Why more of a quantity may have been there than was seen.
    pub(super) fn doubt(&self, quantity: &Quantity) -> Option<String> {
        let needed = sources(quantity, self.told_by_events);
        if needed.contains(&EVENTS)
            && let Some(why) = &self.lost
        {
            return Some(why.clone());
        }
        let of = |name: &'static str| match name {
            EVENTS => self.events.clone(),
            SYMBOLS => self.symbols.clone(),
            _ => self.smi.clone(),
        };
        needed.into_iter().find_map(of)
    }
}

/// The sources without which a quantity may read lower than it is.
fn sources(quantity: &Quantity, told_by_events: bool) -> Vec<&'static str> {
    match quantity {
        // Measured by the probe itself.
        Quantity::Wait(_)
        | Quantity::Stall(_)
        | Quantity::Late(_)
        | Quantity::Message(_)
        | Quantity::Stolen
        | Quantity::Stalls
        | Quantity::Coverage
        | Quantity::Worse(_) => Vec::new(),
        Quantity::Max if told_by_events => vec![EVENTS],
        Quantity::Max => Vec::new(),
        // What no source explains is counted by these: the fewer there are, the higher they read.
        Quantity::Lost | Quantity::Unexplained | Quantity::Unresolved | Quantity::Hypervisor => vec![EVENTS],
        Quantity::Firmware => vec![EVENTS, SMI],
        Quantity::Culprit(pattern) => {
            let mut all = vec![EVENTS];
            let (of, name) = kind_and_rest(pattern);
            let means = |kind: CulpritKind| of == Some(kind) || matches(pattern, kind.as_str());
            // A kind is known without names, and time that nobody explains is counted wherever firmware's is not.
            let named = matches!(of, Some(CulpritKind::Kworker | CulpritKind::Timer | CulpritKind::Ipi));
            if named || !CulpritKind::ALL.into_iter().any(means) {
                all.push(SYMBOLS);
            }
            let smi = of.is_none() && matches(name, Verdict::Smi.as_str());
            if (means(CulpritKind::Firmware) || smi) && !means(CulpritKind::Unresolved) {
                all.push(SMI);
            }
            all
        }
    }
}

/// Whether the longest wait comes from kernel events: no probe measured it, and no messages were timed.
fn is_told_by_events(run: &RunSummary) -> bool {
    let timed = run.pipeline.iter().flat_map(|pipeline| &pipeline.consumers);
    run.probe.total.max_ns.is_none() && !timed.into_iter().any(|times| times.from_intended.count > 0)
}

/// Why nothing is to be passed or failed by what a run says of culprits.
///
/// # Errors
/// Its evidence fails its own proof.
pub(super) fn proven(run: &RunSummary) -> Result<(), String> {
    match run.trust.doubts.as_slice() {
        [] => Ok(()),
        doubts => Err(format!("who did it cannot be said: {}", doubts_text(doubts))),
    }
}

/// Why more of a quantity may have been there than was seen.
pub(super) fn doubts(quantity: &Quantity, run: &RunSummary) -> Option<String> {
    Unseen::of(run).doubt(quantity)
}

fn lost(run: &RunSummary) -> Option<String> {
    if run.trust.lost_records > 0 {
        return Some(format!("{} kernel events were lost", run.trust.lost_records));
    }
    if run.trust.dropped_records > 0 {
        return Some(format!("{} stalls have no record", run.trust.dropped_records));
    }
    let classes = run.attribution.iter().flat_map(|attribution| &attribution.unexplained.classes);
    let mut verdicts = classes.map(|row| row.subject.as_verdict());
    verdicts
        .any(|verdict| verdict == Some(Verdict::TraceDataLost))
        .then(|| "trace data was lost within stalls".into())
}

/// Why a source was not all there.
fn missing(name: &str, run: &RunSummary) -> Option<String> {
    let what = match name {
        EVENTS => "kernel events were not all to be had",
        SYMBOLS => "names of kernel functions (symbols) were not all to be had",
        _ => "firmware (smi) could not be told apart",
    };
    let why = match run.sources.iter().find(|source| source.name == name) {
        Some(source) if source.status != SourceStatus::Available => source.reason.as_str(),
        // What was attributed was so by events, with the names that there were: older runs list neither.
        None if name != SMI => return None,
        None => "this run did not count its interrupts",
        Some(_) if name == SMI && run.run.hypervisor.is_some() => {
            "a virtual machine's counter does not see the host's"
        }
        Some(_) => return None,
    };
    Some(if why.is_empty() { what.to_owned() } else { format!("{what}: {why}") })
}
