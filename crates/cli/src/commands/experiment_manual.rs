//! `experiment --manual`: a change that the user makes by hand, as in a machine's firmware. The runs without it are made
//! before, those with it after the user says that it is made. Everything else is checked for equality.

use super::audit_expect::facts;
use super::experiment_across::{conclude, is_over};
use super::experiment_args::ExperimentArgs;
use super::experiment_failed::{failed, refused};
use super::experiment_runner::runner;
use super::experiment_session::{SESSIONS, asked, begin, last};
use super::experiment_watcher::Watcher;
use crate::exit::{Exit, UsageError};
use crate::places::Places;
use anyhow::{Context, bail};
use jitterscope_experiment::{
    Difference, Ended, Experiment, ManualChange, Predicted, Rules, Session,
};
use jitterscope_model::DifferenceClass;
use jitterscope_platform::{CpuChoice, Machine};
use jitterscope_view::expected::{Deviation, DeviationState, Expected, written};
use jitterscope_view::experiment as view;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The most differences that an error lists.
const LISTED: usize = 20;

/// Makes the runs of one arm, and compares the arms once both are made.
///
/// # Errors
/// The machine differs in more than the change, no runs were made without it, or nothing can be measured.
pub(super) fn run(
    args: &ExperimentArgs,
    what: &str,
    places: &Places,
    machine: Machine,
    (measured, rules): (CpuChoice, Rules),
    stop: &AtomicBool,
) -> anyhow::Result<Exit> {
    let removes = args.removes.iter().cloned().map(Predicted::Pattern);
    let change = ManualChange::new(&machine, what, removes.collect(), args.changed);
    let mut change = change.map_err(refused)?;
    let asked = format!("{}; by hand", asked(args, &change, &measured.cpus));
    let title = format!("Experiment: {asked}");
    let folder = places.runs()?.join(SESSIONS);
    let mut session = open(args, &machine, &folder, asked, &change)?;
    let mut runner = runner(args, machine, measured, places)?;
    let mut watcher = Watcher::new(args.quiet, rules.looks);
    let outcome = jitterscope_experiment::run(Experiment {
        change: &mut change,
        runner: &mut *runner,
        session: &mut session,
        rules,
        answers: &super::compare_with::answers,
        observer: &mut watcher,
        stop,
    })
    .map_err(failed)?;
    let next = next(args, what, outcome.ended);
    conclude(args, &title, &outcome, &[], &next)
}

/// With the change: the session whose runs were made without it, if only the change differs. Without it: this boot's
/// session, or a new one with the machine as it is.
fn open(
    args: &ExperimentArgs,
    machine: &Machine,
    folder: &Path,
    asked: String,
    change: &ManualChange,
) -> anyhow::Result<Session> {
    let (found, why) = last(machine, folder, &|header| header.asked == asked);
    match found {
        Some(session) if args.changed => {
            compared(args, machine, &session, change)?;
            Ok(session)
        }
        None if args.changed => {
            let text = "--changed: no runs without the change were made by the same command: undo the change, and \
                        start the command without --changed first";
            Err(match why {
                Some(error) => anyhow::Error::from(error).context(text),
                None => UsageError(text.into()).into(),
            })
        }
        // Runs of another boot do not compare with this boot's.
        Some(session) if session.header.boot_id == session.boot_id && !is_over(&session) => {
            Ok(session)
        }
        Some(session) if args.resume && !is_over(&session) => bail!(
            "the runs without the change were made in an earlier boot: if the change is made now, add --changed; \
             without --resume they are made anew in this boot"
        ),
        _ => {
            let mut session = begin(machine, folder, asked)?;
            let mut now = change.surroundings().clone();
            now.state = Some(written(&facts(machine)?));
            session.surround(now)?;
            Ok(session)
        }
    }
}

/// Checks that the machine is as it was without the change, except for what --changes names.
fn compared(
    args: &ExperimentArgs,
    machine: &Machine,
    session: &Session,
    change: &ManualChange,
) -> anyhow::Result<()> {
    let Some(before) = &session.surroundings else {
        bail!("the session that would go on does not say what the machine was like")
    };
    let is_allowed = |what: &str| {
        let mut patterns = args.changes.iter();
        patterns.any(|pattern| jitterscope_tune::glob::matches(pattern, what))
    };
    let mut differences: Vec<String> = Vec::new();
    match before.difference(change.surroundings()) {
        Some(Difference::Online { .. }) if is_allowed("online") => {}
        Some(of) => differences.push(view::difference(&of)),
        None => {}
    }
    let state = before.state.as_deref().unwrap_or_default();
    let expected = Expected::parse(state).context("the session's state of the machine")?;
    let checked = expected.check("", &facts(machine)?);
    let matters = |of: &&Deviation| {
        of.state != DeviationState::Unreadable
            && of.class != Some(DifferenceClass::Informational)
            && !is_allowed(&of.what)
    };
    let others = checked.deviations.iter().filter(matters);
    differences.extend(others.map(|of| {
        let now = of.here.as_deref().unwrap_or("not there");
        format!("{} was {} and is {now}", of.what, of.declared)
    }));
    if differences.is_empty() {
        return Ok(());
    }
    let more = differences.len().saturating_sub(LISTED);
    differences.truncate(LISTED);
    if more > 0 {
        differences.push(format!("and {more} more"));
    }
    bail!(
        "the machine differs in more than the change:\n  {}\nRestore the other settings, or list those that belong to \
         the change in --changes, and start the same command again. The runs without the change are kept",
        differences.join("\n  ")
    )
}

/// The next steps, one line each.
fn next(args: &ExperimentArgs, what: &str, ended: Ended) -> Vec<String> {
    match (args.changed, ended) {
        (false, Ended::AwaitsReboot) => vec![
            format!("1. Make the change by hand: {what}. Reboot or power-cycle the machine if it needs that."),
            "2. Run the same command with --changed: it checks that nothing else differs, and continues with the \
             existing runs."
                .to_owned(),
        ],
        (true, _) => vec!["The change stays until you undo it.".to_owned()],
        _ => Vec::new(),
    }
}
