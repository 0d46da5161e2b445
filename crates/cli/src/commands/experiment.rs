//! `experiment`: tests whether a change helps.

use super::audit::goal_error;
use super::compare_with::answers;
use super::experiment_args::ExperimentArgs;
use super::experiment_earlier::earlier;
use super::experiment_ending::end;
use super::experiment_failed::{failed, refused};
use super::experiment_guard::{Guard, Guarded, Revert};
use super::experiment_probe;
use super::experiment_runner::runner;
use super::experiment_session::{SESSIONS, asked, rules, session};
use super::experiment_watcher::Watcher;
use super::leftovers::PutRight;
use super::tune::who;
use super::{
    experiment_across, experiment_auto, experiment_auto_plan, experiment_manual, experiment_trial,
};
use crate::exit::{Exit, UsageError};
use crate::measured;
use crate::output;
use crate::places::Places;
use crate::signals;
use anyhow::Context;
use jitterscope_analyze::gate::check_name;
use jitterscope_experiment::{
    Arm, Change, CommandChange, Declared, Experiment, ExperimentError, KnobChange, NoChange,
    NoteError, Notes, Predicted, Session, estimate, interleaves,
};
use jitterscope_model::CpuSet;
use jitterscope_platform::{CpuChoice, Machine};
use jitterscope_tune::{Goal, StateDir};
use jitterscope_view::cpus_because;
use jitterscope_view::experiment as view;
use std::path::Path;
use std::time::Duration;

/// How long to wait for another experiment to end.
const NOTED: Duration = Duration::from_millis(500);

/// Runs `experiment`.
///
/// # Errors
/// The arguments are contradictory, nothing can be measured, or the machine cannot be changed or restored.
pub fn run(args: &ExperimentArgs, places: &Places) -> anyhow::Result<Exit> {
    let machine = Machine::host();
    let rules = rules(args)?;
    for name in &args.removes {
        check_name(name).map_err(|why| UsageError(format!("--removes: {why}")))?;
    }
    let stop = signals::stop_flag(places).context("signal handlers cannot be set")?;
    let measured = cpus_to_measure(args, &machine)?;
    experiment_probe::check(args, &measured.cpus)?;
    if !args.dry_run && (args.auto || !args.knob.is_empty()) {
        // An unprivileged user gets the error before any measurement.
        drop(StateDir::at(&args.state_dir).lock()?);
        put_right_first(&args.state_dir)?;
    }
    if args.across_reboot {
        return experiment_across::run(args, places, machine, (measured, rules), &stop);
    }
    if let Some(what) = &args.manual {
        return experiment_manual::run(args, what, places, machine, (measured, rules), &stop);
    }
    if args.auto {
        experiment_auto::check(args)?;
        if args.dry_run {
            return experiment_auto_plan::run(args, places, &machine, &measured, &stop);
        }
        return experiment_auto::run(args, places, &machine, measured, &stop);
    }
    let notes = notes(args)?;
    let revert = match (&notes, &args.revert) {
        (Some(_), _) => Revert::Noted,
        (None, Some(command)) => Revert::Command(command),
        (None, None) => Revert::Knobs,
    };
    let mut change = change(args, &machine, &measured.cpus, notes)?;
    let runs = places.runs()?;
    let asked = asked(args, &*change, &measured.cpus);
    if args.dry_run {
        let trial = || experiment_trial::overhead(args, &machine, &measured, places, &stop);
        let known = earlier(args, &runs, &measured.cpus, trial);
        let reported = estimate(&*change, &known, &rules);
        if args.json {
            output::json(&reported)?;
        } else {
            let report = view::estimate(&reported, &asked);
            output::result(&report.terminal(output::style()))?;
        }
        return Ok(Exit::Ok);
    }
    let interleaved = interleaves(&*change, &rules);
    // `--longest-wait` decides whether the arms alternate: those are two different experiments.
    let asked = if interleaved {
        asked
    } else {
        format!("{asked}; not interleaved")
    };
    let title = format!("Experiment: {asked}");
    let mut session = session(args, &machine, &runs.join(SESSIONS), asked, &|session| {
        made(session, interleaved)
    })?;
    let mut runner = runner(args, machine, measured, places)?;
    // An environment variable changes nothing on the machine.
    let mut guard = match args.env.is_empty() {
        true => Some(Guard::start(
            &args.state_dir,
            change.knobs(),
            revert,
            places,
        )?),
        false => None,
    };
    let mut watcher = Watcher::new(args.quiet, rules.looks);
    let mut guarded = Guarded {
        change: &mut *change,
        guard: guard.as_mut(),
    };
    let made = jitterscope_experiment::run(Experiment {
        change: &mut guarded,
        runner: &mut *runner,
        session: &mut session,
        rules,
        answers: &answers,
        observer: &mut watcher,
        stop: &stop,
    });
    // If the change could not be undone, the guard tries once more.
    let left = made.as_ref().is_err_and(ExperimentError::leaves_the_change);
    match guard {
        Some(guard) if !left => guard.finish(),
        other => drop(other),
    }
    let outcome = made.map_err(failed)?;
    let report = view::outcome(&outcome, "The same command with --resume goes on.");
    if args.json {
        output::json(&view::outcome_json(&outcome))?;
    } else {
        output::result(&report.terminal(output::style()))?;
    }
    end(args, &title, Some(&outcome), outcome.ended, report)
}

fn cpus_to_measure(args: &ExperimentArgs, machine: &Machine) -> anyhow::Result<CpuChoice> {
    let chosen = measured::choose(machine, args.cpus.as_ref(), "--cpus")?;
    if let (Some(because), false) = (&chosen.because, args.quiet || !args.probe.is_on_cpus()) {
        output::talk(format_args!(
            "measuring CPU {}: {}",
            chosen.cpus,
            cpus_because(because)
        ));
    }
    Ok(chosen)
}

/// Cleans up after an earlier experiment whose guard was killed, too.
fn put_right_first(state_dir: &Path) -> anyhow::Result<()> {
    let mut found = PutRight::default();
    found.experiment(state_dir);
    for what in &found.done {
        output::talk(format_args!("put right first: {what}"));
    }
    anyhow::ensure!(found.failed.is_empty(), "{}", found.failed.join("; "));
    Ok(())
}

/// The notes on how to undo a command's change; an ordinary user may have no place for them.
fn notes(args: &ExperimentArgs) -> anyhow::Result<Option<Notes>> {
    if args.apply.is_none() || args.dry_run {
        return Ok(None);
    }
    put_right_first(&args.state_dir)?;
    match Notes::take(&args.state_dir, NOTED) {
        Ok(notes) => Ok(Some(notes)),
        Err(NoteError::Trust(error)) => {
            output::talk(format_args!(
                "{error}: what undoes the change cannot be noted; if this and the process that guards it are both \
                 killed, run it yourself"
            ));
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn change(
    args: &ExperimentArgs,
    machine: &Machine,
    cpus: &CpuSet,
    notes: Option<Notes>,
) -> anyhow::Result<Box<dyn Change>> {
    if let (Some(apply), Some(revert)) = (&args.apply, &args.revert) {
        let when = |seen_by: &Option<String>| {
            let asked = seen_by.as_ref().map(|_| args.longest_wait);
            Declared {
                seen_by: seen_by.clone(),
                within: args.settles_in.or(asked).unwrap_or_default(),
            }
        };
        let change = CommandChange::new(apply, revert, notes);
        let (applied, reverted) = (when(&args.applied_when), when(&args.reverted_when));
        return Ok(Box::new(change.declaring(applied, reverted, removes(args))));
    }
    if !args.env.is_empty() {
        return Ok(Box::new(NoChange {
            what: args.env.join(" "),
            removes: removes(args),
        }));
    }
    let goal = Goal::to_apply(machine, cpus.clone()).map_err(goal_error)?;
    let dir = StateDir::at(&args.state_dir);
    let knobs = KnobChange::new(machine, dir, who(machine), goal, args.knob.clone());
    Ok(Box::new(knobs.map_err(refused)?))
}

/// The culprits that the change should remove, according to the user.
fn removes(args: &ExperimentArgs) -> Vec<Predicted> {
    args.removes
        .iter()
        .cloned()
        .map(Predicted::Pattern)
        .collect()
}

/// A text on the runs that a session has already.
fn made(session: &Session, interleaved: bool) -> String {
    if interleaved {
        return format!("{} pairs", session.pairs.len());
    }
    let of = |arm| session.block.iter().filter(|run| run.arm == arm).count();
    format!(
        "{} runs without the change and {} with it",
        of(Arm::A),
        of(Arm::B)
    )
}
