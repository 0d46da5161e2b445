//! The summary of a stored run with this version's verdicts.

use super::{ReplayError, Replayed, replay};
use jitterscope_analyze::periods::Effort;
use jitterscope_analyze::{Redactor, RunSummary, SummaryBuilder};
use jitterscope_model::{Attribution, RunManifest, Stall, Warning};
use jitterscope_store::{RunReader, StoreError};
use std::path::Path;

/// Summarizes a run whose stalls are attributed again from its raw trace. Stalls without a stored trace keep the stored
/// verdict, and the summary states their number. The stored run does not change. `redact`: leaves out the machine's
/// owner, its name and the names of its programs.
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
    // A first replay for the results of the whole run, which precede its rows; so no rows need to wait in memory.
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

/// The run's manifest after the replay.
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
