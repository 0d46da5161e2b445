//! The summary of a stored run with the verdicts of this version.

use super::{ReplayError, Replayed, replay};
use jitterscope_analyze::periods::Effort;
use jitterscope_analyze::{Redactor, RunSummary, SummaryBuilder};
use jitterscope_model::{Attribution, RunManifest, Stall, Warning};
use jitterscope_store::{RunReader, StoreError};
use std::path::Path;

/// Sums up a run whose stalls are attributed anew from the raw trace that it kept. Stalls of which no trace
/// is left keep the verdict that is stored, and the summary says how many those are. The run itself stays
/// as it is. `redact`: without who owns the machine, what it is called and what runs on it.
///
/// # Errors
/// The run kept no trace, is too old for its kind, or cannot be read.
pub fn reattributed(
    path: &Path,
    worst: usize,
    effort: Effort,
    redact: bool,
) -> Result<RunSummary, ReplayError> {
    let run = RunReader::open(path)?;
    // Once for what becomes of the run as a whole, which stands before its rows; so that no row need wait in
    // memory.
    let replayed = replay(&run, &mut |_, _| {})?;
    let mut redactor = redact.then(Redactor::new);
    let (mut manifest, mut machine) = (manifest(run.manifest(), &replayed), run.machine()?);
    if let Some(redactor) = &mut redactor {
        manifest = redactor.manifest(&manifest);
        machine = machine.map(|machine| redactor.machine(&machine));
    }
    let mut builder = SummaryBuilder::new(&manifest)
        .machine(machine)
        .worst(worst)
        .periods(effort);
    if redactor.is_none() {
        builder = builder.path(path);
    }
    let mut stored = run.attributions()?.peekable();
    let mut unreadable = None;
    let mut row = |stall: &Stall, attribution: Option<Attribution>| {
        builder.stall(
            &redactor
                .as_mut()
                .map_or(*stall, |redactor| redactor.stall(stall)),
        );
        let kept = |next: &Result<Attribution, StoreError>| {
            next.as_ref().map_or(true, |a| a.stall <= stall.id)
        };
        let mut before = None;
        while let Some(next) = stored.next_if(kept) {
            match next {
                Ok(attribution) if attribution.stall == stall.id => before = Some(attribution),
                Ok(_) => {}
                Err(error) => unreadable = Some(error),
            }
        }
        if let Some(attribution) = attribution.or(before) {
            builder.attribution(&match &mut redactor {
                Some(redactor) => redactor.attribution(&attribution),
                None => attribution,
            });
        }
    };
    replay(&run, &mut row)?;
    if let Some(error) = unreadable {
        return Err(error.into());
    }
    match &replayed.intervals {
        Some(intervals) => intervals.iter().for_each(|row| builder.interval(row)),
        None => {
            for row in run.intervals()? {
                builder.interval(&row?);
            }
        }
    }
    Ok(builder.finish())
}

/// What the run says of itself after it was attributed again.
fn manifest(stored: &RunManifest, replayed: &Replayed) -> RunManifest {
    let mut manifest = stored.clone();
    if let Some(threads) = &replayed.threads {
        manifest.threads.clone_from(threads);
    }
    if let Some(cpus) = &replayed.passive {
        manifest.passive.clone_from(cpus);
    }
    if let Some(events) = replayed.events_in_gaps {
        manifest.events_in_gaps = events;
    }
    manifest.warnings.push(Warning::AttributedAgain {
        by: env!("CARGO_PKG_VERSION").into(),
        recorded_by: stored.tool_version.clone(),
    });
    if replayed.without_trace > 0 {
        manifest.warnings.push(Warning::VerdictsKept {
            kept: replayed.without_trace,
            stalls: replayed.stalls,
        });
    }
    manifest
}
