//! `experiment --auto`: all that the audit advises, tried at once, sifted, and confirmed by fresh pairs.

use super::audit::goal_error;
use super::compare_with::answers;
use super::experiment::{ExperimentArgs, rules};
use super::experiment_guard::{Guard, Guarded, Revert};
use super::experiment_probe::probe_lab;
use super::experiment_watcher::Watcher;
use super::scope::evidence_of;
use super::tune::who;
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::places::Places;
use anyhow::Context;
use jitterscope_analyze::compare::ComparedRun;
use jitterscope_experiment::{
    Arm, Change, Experiment, Header, InForceIn, KnobChange, Outcome, Rules, SESSION_VERSION, Screened,
    Session, Subject, estimate, screen,
};
use jitterscope_model::{Nanos, SCHEMA_VERSION};
use jitterscope_platform::{CpuChoice, Machine};
use jitterscope_store::RunReader;
use jitterscope_tune::{
    Because, Goal, InForce, Op, Plan, Select, Settles, StateDir, boot_id, plan, realtime_ns,
};
use jitterscope_view::experiment as view;
use serde::Serialize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Runs without and with all candidates, by which they are judged: the fewest of which a test can come out.
const RUNS: usize = 4;

/// What came of it.
#[derive(Debug, Serialize)]
struct Sifted {
    schema_version: u32,
    /// The candidates, in the order of the audit.
    candidates: Vec<Screened>,
    /// What only a reboot can try.
    needs_reboot: Vec<&'static str>,
    /// What cannot be tried here, and why.
    not_tried: Vec<(String, String)>,
    /// Fresh pairs of all that was kept against none; null where nothing was kept, or time ran out.
    confirmed: Option<Outcome>,
}

/// Runs it.
///
/// # Errors
/// Nothing can be measured, or the machine cannot be changed or put back.
pub fn run(
    args: &ExperimentArgs,
    places: &Places,
    machine: &Machine,
    measured: CpuChoice,
    stop: &AtomicBool,
) -> anyhow::Result<Exit> {
    let deadline = Instant::now() + Duration::from_nanos(args.budget.0);
    let goal = Goal::to_apply(machine, measured.cpus.clone()).map_err(goal_error)?;
    let dir = || StateDir::at(&args.state_dir);
    let mut lab = probe_lab(args, machine, &measured, places)?;
    let Some(before) = runs(&mut lab, Arm::A, stop)? else { return Ok(Exit::Failed) };
    let evidence = evidence_of(&RunReader::open(Path::new(&before[0].path))?)?;
    let found = plan(machine, &goal, &Select::RunEvidence(evidence), &args.except, false)?;
    let (knobs, not_tried) = candidates(&found, args.longest_wait);
    let needs_reboot =
        found.skipped.iter().filter(|s| s.because == Because::NeedsReboot).map(|s| s.knob).collect();
    let mut sifted = Sifted {
        schema_version: SCHEMA_VERSION,
        candidates: Vec::new(),
        needs_reboot,
        not_tried,
        confirmed: None,
    };
    if !knobs.is_empty() {
        if !args.quiet {
            output::talk(format_args!("trying {}", knobs.join(", ")));
        }
        let mut guard = Guard::start(&args.state_dir, &knobs, Revert::Knobs, places)?;
        let tried = sift(args, machine, &goal, &knobs, &before, &mut lab, &mut guard, stop);
        let confirmed = match tried {
            Ok(Some(candidates)) => {
                let kept: Vec<String> =
                    candidates.iter().filter(|c| c.kept).map(|c| c.knob.clone()).collect();
                sifted.candidates = candidates;
                if kept.is_empty() {
                    Ok(None)
                } else {
                    KnobChange::new(machine, dir(), who(machine), goal.clone(), kept)
                        .map_err(anyhow::Error::from)
                        .and_then(|change| {
                            confirm(args, machine, places, change, &mut lab, &mut guard, stop, deadline)
                        })
                }
            }
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        // A guard that hears no farewell undoes what is left.
        sifted.confirmed = confirmed?;
        guard.farewell();
    }
    if args.json {
        output::json(&sifted)?;
    } else {
        output::result(&text(&sifted))?;
    }
    Ok(if stop.load(Ordering::Relaxed) { Exit::Failed } else { Exit::Ok })
}

/// Runs of one arm; `None` where it was stopped.
fn runs(lab: &mut dyn Subject, arm: Arm, stop: &AtomicBool) -> anyhow::Result<Option<Vec<ComparedRun>>> {
    let mut made = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let Some(run) = lab.measure(arm, stop)? else { return Ok(None) };
        made.push(run);
    }
    Ok(Some(made))
}

/// Knobs that can be tried and undone within the wait, and why others cannot.
fn candidates(plan: &Plan, longest: Nanos) -> (Vec<String>, Vec<(String, String)>) {
    let (mut knobs, mut not_tried): (Vec<String>, Vec<(String, String)>) = (Vec::new(), Vec::new());
    for change in &plan.changes {
        let undone = InForce::of(change.knob).map_or(Settles::Immediately, |declared| declared.rollback);
        let replaced = if let Op::Write { to, .. } = &change.op { to.as_str() } else { "" };
        let fits = undone.longest(replaced).is_some_and(|time| time <= longest);
        let known = |all: &[String]| all.iter().any(|knob| knob == change.knob);
        if !fits && !not_tried.iter().any(|(knob, _)| knob == change.knob) {
            not_tried.push((change.knob.to_owned(), format!("undone {}", undone.describe())));
        }
        if fits && !known(&knobs) {
            knobs.push(change.knob.to_owned());
        }
    }
    knobs.retain(|knob| !not_tried.iter().any(|(other, _)| other == knob));
    (knobs, not_tried)
}

/// Waits; false where it was stopped.
fn settle(settles: InForceIn, stop: &AtomicBool) -> bool {
    let wait = match settles {
        InForceIn::Within(time) => Duration::from_nanos(time.0),
        InForceIn::Now | InForceIn::Unknown(_) => Duration::ZERO,
    };
    let until = Instant::now() + wait;
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
    }
    !stop.load(Ordering::Relaxed)
}

/// All of them at once, judged by what each declares; undone when it returns. `None` where it was stopped.
#[expect(clippy::too_many_arguments, reason = "what the steps of one command share")]
fn sift(
    args: &ExperimentArgs,
    machine: &Machine,
    goal: &Goal,
    knobs: &[String],
    before: &[ComparedRun],
    lab: &mut dyn Subject,
    guard: &mut Guard,
    stop: &AtomicBool,
) -> anyhow::Result<Option<Vec<Screened>>> {
    let dir = StateDir::at(&args.state_dir);
    let mut change = KnobChange::new(machine, dir, who(machine), goal.clone(), knobs.to_vec())?;
    let mut guarded = Guarded { change: &mut change, guard: Some(guard) };
    let measured = guarded.apply().map_err(anyhow::Error::from).and_then(|settles| {
        if !settle(settles, stop) {
            return Ok(None);
        }
        runs(lab, Arm::B, stop)
    });
    let judged = measured.and_then(|after| {
        let judge = |after: Vec<ComparedRun>| Ok(screen(before, &after, knobs, args.margin, &answers)?);
        after.map(judge).transpose()
    });
    // What is not kept goes one by one, so that one that cannot be undone is told by name and keeps no other
    // from it; then what is kept, for the pairs begin without.
    let rejected = judged.as_ref().ok().and_then(Option::as_ref).into_iter().flatten().filter(|c| !c.kept);
    let mut settles = InForceIn::Now;
    let mut left = Vec::new();
    for candidate in rejected {
        match change.undo(std::slice::from_ref(&candidate.knob)) {
            Ok(more) => {
                settles = settles.and(more);
                if !args.quiet {
                    output::talk(format_args!("{} is undone", candidate.knob));
                }
            }
            Err(error) => left.push(error.to_string()),
        }
    }
    settles = settles.and(Guarded { change: &mut change, guard: Some(guard) }.revert()?);
    anyhow::ensure!(left.is_empty(), "{}", left.join("; "));
    let Some(candidates) = judged? else { return Ok(None) };
    if !settle(settles, stop) {
        return Ok(None);
    }
    Ok(Some(candidates))
}

/// Fresh pairs of all that was kept against none.
#[expect(clippy::too_many_arguments, reason = "what the steps of one command share")]
fn confirm(
    args: &ExperimentArgs,
    machine: &Machine,
    places: &Places,
    mut change: KnobChange,
    lab: &mut dyn Subject,
    guard: &mut Guard,
    stop: &AtomicBool,
    deadline: Instant,
) -> anyhow::Result<Option<Outcome>> {
    let rules = Rules { deadline: Some(deadline), ..rules(args)? };
    let takes = estimate(&change, args.duration, &rules, &[]).takes_ns[0];
    if Instant::now() + Duration::from_nanos(takes.0) > deadline && !args.quiet {
        output::talk(format_args!(
            "the pairs that confirm take {takes}, more than what is left of the budget"
        ));
    }
    let seed = fastrand::u64(..);
    let header = Header {
        version: SESSION_VERSION,
        asked: format!("auto: {}", change.describe()),
        seed,
        started_realtime_ns: realtime_ns(),
        boot_id: boot_id(machine),
    };
    let folder = places.runs()?.join(super::experiment::SESSIONS);
    let name = format!("{}-{:08x}", header.started_realtime_ns, seed as u32);
    let mut session = Session::begin(&folder.join(name), header).context("the pairs cannot be kept")?;
    let mut watcher = Watcher::new(args.quiet, rules.looks);
    let mut guarded = Guarded { change: &mut change, guard: Some(guard) };
    let outcome = jitterscope_experiment::run(Experiment {
        change: &mut guarded,
        subject: lab,
        session: &mut session,
        rules,
        answers: &answers,
        observer: &mut watcher,
        stop,
    })?;
    Ok(Some(outcome))
}

fn text(sifted: &Sifted) -> String {
    let mut text =
        sifted.confirmed.as_ref().map_or_else(String::new, |outcome| view::outcome(outcome, output::style()));
    text.push_str(&view::sifted(
        &sifted.candidates,
        &sifted.needs_reboot,
        &sifted.not_tried,
        output::style(),
    ));
    text
}

/// Refuses what does not go with it.
///
/// # Errors
/// A COMMAND was given, or an experiment is to go on.
pub fn check(args: &ExperimentArgs) -> Result<(), UsageError> {
    if !args.command.is_empty() || args.resume || args.dry_run {
        return Err(UsageError(
            "--auto measures with a probe, from the start: without COMMAND, --resume, --dry-run".into(),
        ));
    }
    Ok(())
}
