//! `experiment --across-reboot`: knobs of the boot line. The runs without them are made before a reboot, those with
//! them after it.

use super::audit::goal_error;
use super::experiment_args::ExperimentArgs;
use super::experiment_failed::{failed, refused};
use super::experiment_runner::runner;
use super::experiment_session::{SESSIONS, asked, begin, last};
use super::experiment_watcher::Watcher;
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::places::Places;
use anyhow::bail;
use jitterscope_experiment::{Arm, BootArm, BootChange, Change, Ended, Experiment, Rules, Session};
use jitterscope_model::CpuSet;
use jitterscope_platform::{CpuChoice, Machine};
use jitterscope_tune::Goal;
use jitterscope_view::experiment as view;
use jitterscope_view::tuning::boot_by_hand;
use serde::Serialize;
use std::sync::atomic::AtomicBool;

/// Makes the arm that this boot is of, and compares where both are made.
///
/// # Errors
/// The knobs are not of the boot line, something else than they differs from the other boot, or nothing can be
/// measured.
pub(super) fn run(
    args: &ExperimentArgs,
    places: &Places,
    machine: Machine,
    (measured, rules): (CpuChoice, Rules),
    stop: &AtomicBool,
) -> anyhow::Result<Exit> {
    let goal = Goal::to_apply(&machine, measured.cpus.clone()).map_err(goal_error)?;
    let mut change = BootChange::new(&machine, &goal, args.knob.clone()).map_err(refused)?;
    let asked = format!("{}; across a reboot", asked(args, &change, &measured.cpus));
    let folder = places.runs()?.join(SESSIONS);
    let mut session = open(args, &machine, &folder, asked, &change)?;
    let cpus = measured.cpus.clone();
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
    let next = next(args, &cpus, &change, outcome.ended);
    if args.json {
        let parameters = &change.surroundings().parameters;
        output::json(&AcrossJson {
            outcome: view::outcome_json(&outcome),
            parameters,
            next: &next,
        })?;
    } else {
        let goes_on = "The same command goes on.";
        let text = view::outcome(&outcome, goes_on, output::style());
        output::result(&format!("{text}\n{}\n", next.join("\n")))?;
    }
    Ok(if outcome.ended == Ended::Stopped {
        Exit::Failed
    } else {
        Exit::Ok
    })
}

/// What it came to, with what a boot needs and what to do next.
#[derive(Serialize)]
struct AcrossJson<'a, O> {
    #[serde(flatten)]
    outcome: O,
    parameters: &'a [String],
    next: &'a [String],
}

/// The session to go on with: in the boot with the change the one whose other arm is made, else that of this boot, or
/// a new one. A boot that lacks the planned change ends with an error, where it was to go on.
fn open(
    args: &ExperimentArgs,
    machine: &Machine,
    folder: &std::path::Path,
    asked: String,
    change: &BootChange,
) -> anyhow::Result<Session> {
    let (found, why) = last(machine, folder, &|header| header.asked == asked);
    let now = change.surroundings();
    match (change.boot(), found) {
        (BootArm::With, Some(session)) => {
            let Some(before) = &session.surroundings else {
                bail!("the session that would go on does not say what its boot was like")
            };
            if let Some(of) = before.difference(now) {
                let what = view::difference(&of);
                bail!(
                    "the two boots differ in more than what is tried: {what}. Boot as before with {} added, and start \
                     the same command again; the runs without it are kept",
                    before.parameters.join(" ")
                );
            }
            Ok(session)
        }
        (BootArm::With, None) => {
            let text = format!(
                "{} is in force in this boot, and no runs without it were made by the same command: boot without {} \
                 and start it there",
                change.describe(),
                now.parameters.join(" ")
            );
            Err(match why {
                Some(error) => anyhow::Error::from(error).context(text),
                None => UsageError(text).into(),
            })
        }
        // What was measured in another boot without the change is compared with nothing of this one.
        (_, Some(session)) if session.header.boot_id == session.boot_id && !is_over(&session) => {
            Ok(session)
        }
        (_, Some(session)) if args.resume && !is_over(&session) => bail!(
            "the runs without {} were made in an earlier boot, and it is not in force in this one: add {} to the kernel's \
             command line, reboot and start the same command again; without --resume they are made anew in this boot",
            change.describe(),
            now.parameters.join(" ")
        ),
        _ => {
            let mut session = begin(machine, folder, asked)?;
            session.surround(now.clone())?;
            Ok(session)
        }
    }
}

/// Whether runs of both arms were made.
fn is_over(session: &Session) -> bool {
    session.block.iter().any(|run| run.arm == Arm::B)
}

/// What to do now, a line each.
fn next(args: &ExperimentArgs, cpus: &CpuSet, change: &BootChange, ended: Ended) -> Vec<String> {
    let parameters = change.surroundings().parameters.join(" ");
    match (change.boot(), ended) {
        (BootArm::Without, Ended::AwaitsReboot) => {
            let knobs = args.knob.join(",");
            let mut lines = vec![
                "Next:".to_owned(),
                format!("  1. jitterscope tune apply --cpus {cpus} --only {knobs} --persist"),
                format!("     or by hand: add {parameters} to the kernel's command line"),
            ];
            lines.extend(change.line().map(|line| format!("     {}", boot_by_hand(&line.by_hand))));
            lines.push("  2. reboot".to_owned());
            lines.push("  3. the same command again: it goes on with the runs that are made".to_owned());
            lines
        }
        (BootArm::With, _) => vec![
            format!("{parameters} stays in force until it is off the kernel's command line. To put it back:"),
            "  jitterscope tune rollback (where tune apply --persist made it), or take it out by hand; then reboot"
                .to_owned(),
        ],
        _ => Vec::new(),
    }
}
