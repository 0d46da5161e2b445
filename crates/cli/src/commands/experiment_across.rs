//! `experiment --across-reboot`: knobs of the boot line. The runs without them are made before a reboot, those with
//! them after it.

use super::audit::goal_error;
use super::experiment_args::ExperimentArgs;
use super::experiment_ending::end;
use super::experiment_failed::{failed, refused};
use super::experiment_runner::runner;
use super::experiment_session::{SESSIONS, asked, begin, last};
use super::experiment_watcher::Watcher;
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::places::Places;
use anyhow::bail;
use jitterscope_experiment::{
    Arm, BootArm, BootChange, Change, Ended, Experiment, Outcome, Rules, Session,
};
use jitterscope_model::CpuSet;
use jitterscope_platform::{CpuChoice, Machine};
use jitterscope_tune::Goal;
use jitterscope_view::experiment::{self as view, OutcomeWithWords};
use jitterscope_view::tuning::boot_by_hand;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::atomic::AtomicBool;

/// Makes the arm of this boot, and compares the arms once both are made.
///
/// # Errors
/// The knobs are not on the boot line, the boots differ in something else, or nothing can be measured.
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
    let title = format!("Experiment: {asked}");
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
    let parameters = &change.surroundings().parameters;
    conclude(args, &title, &outcome, parameters, &next)
}

/// Prints the outcome of arms that were measured one after the other, with the next steps, and returns the exit code.
pub(super) fn conclude(
    args: &ExperimentArgs,
    title: &str,
    outcome: &Outcome,
    parameters: &[String],
    next: &[String],
) -> anyhow::Result<Exit> {
    let mut report = view::outcome(outcome, "The same command goes on.");
    report.append(view::next_steps(next));
    if args.json {
        output::json(&AcrossReboot::new(outcome, parameters, next))?;
    } else {
        output::result(&report.terminal(output::style()))?;
    }
    end(args, title, Some(outcome), outcome.ended, report)
}

/// The outcome, with the boot parameters and the next steps.
#[derive(Serialize, JsonSchema)]
pub struct AcrossReboot<'a> {
    #[serde(flatten)]
    outcome: OutcomeWithWords<'a>,
    /// The boot parameters of the change; none if a person makes it.
    parameters: &'a [String],
    /// The next steps in words, a line each.
    next: &'a [String],
}

impl<'a> AcrossReboot<'a> {
    pub(super) fn new(
        outcome: &'a Outcome,
        parameters: &'a [String],
        next: &'a [String],
    ) -> AcrossReboot<'a> {
        AcrossReboot {
            outcome: view::outcome_json(outcome),
            parameters,
            next,
        }
    }
}

/// The session to continue. In a boot with the change: the session of the other arm. Otherwise: this boot's session, or
/// a new one. Fails with `--resume` in a boot without the planned change.
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
        // Runs of another boot without the change do not compare with this boot's.
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

/// Whether both arms have runs.
pub(super) fn is_over(session: &Session) -> bool {
    session.block.iter().any(|run| run.arm == Arm::B)
}

/// The next steps, one line each.
fn next(args: &ExperimentArgs, cpus: &CpuSet, change: &BootChange, ended: Ended) -> Vec<String> {
    let parameters = change.surroundings().parameters.join(" ");
    match (change.boot(), ended) {
        (BootArm::Without, Ended::AwaitsReboot) => {
            let knobs = args.knob.join(",");
            let mut lines = vec![
                format!(
                    "1. `jitterscope tune apply --cpus {cpus} --only {knobs} --persist`, or add {parameters} to the \
                     kernel's command line by hand"
                ),
            ];
            lines.extend(change.line().map(|line| boot_by_hand(&line.by_hand)));
            lines.push("2. Reboot.".to_owned());
            lines.push("3. Run the same command again: it continues with the existing runs.".to_owned());
            lines
        }
        (BootArm::With, _) => vec![
            format!("{parameters} stays in force until it is removed from the kernel's command line."),
            "To remove it: `jitterscope tune rollback` if `tune apply --persist` added it, or edit the line by hand; \
             then reboot."
                .to_owned(),
        ],
        _ => Vec::new(),
    }
}
