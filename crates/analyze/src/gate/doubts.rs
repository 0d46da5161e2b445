//! Why a quantity may be higher than a run tells: a source that it needs was missing, or trace was lost.

use super::condition::Quantity;
use super::quantities::matches;
use crate::RunSummary;
use jitterscope_model::{CulpritKind, SourceStatus, Verdict, doubts_text};

/// The source of all that is told of culprits, threads and watched CPUs.
const EVENTS: &str = "tracefs";
/// The source of functions' names.
const SYMBOLS: &str = "symbols";
/// The source that tells firmware from whatever else is below the kernel.
const SMI: &str = "smi";

/// The sources without which a quantity may read lower than it is.
fn sources(quantity: &Quantity, run: &RunSummary) -> Vec<&'static str> {
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
        Quantity::Max if is_told_by_events(run) => vec![EVENTS],
        Quantity::Max => Vec::new(),
        // What no source explains is counted by these: the fewer there are, the higher they read.
        Quantity::Lost | Quantity::Unexplained | Quantity::Unresolved | Quantity::Hypervisor => vec![EVENTS],
        Quantity::Firmware => vec![EVENTS, SMI],
        Quantity::Culprit(pattern) => {
            let mut all = vec![EVENTS];
            let means = |kind: CulpritKind| matches(pattern, kind.as_str());
            // A kind is known without names, and time that nobody explains is counted wherever firmware's is not.
            if !CulpritKind::ALL.into_iter().any(means) {
                all.push(SYMBOLS);
            }
            let smi = matches(pattern, Verdict::Smi.as_str());
            if (means(CulpritKind::Firmware) || smi) && !means(CulpritKind::Unresolved) {
                all.push(SMI);
            }
            all
        }
    }
}

/// Whether the longest wait comes from kernel events: no probe measured it, and no messages were timed.
pub(super) fn is_told_by_events(run: &RunSummary) -> bool {
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
    let needed = sources(quantity, run);
    if needed.contains(&EVENTS)
        && let Some(why) = lost(run)
    {
        return Some(why);
    }
    needed.into_iter().find_map(|name| missing(name, run))
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
