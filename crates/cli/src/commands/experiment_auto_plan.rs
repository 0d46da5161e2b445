//! `experiment --auto --dry-run`: the candidates, the steps and their duration.

use super::audit::goal_error;
use super::experiment_args::ExperimentArgs;
use super::experiment_auto::{RUNS, candidates, longest_undoing, needs_reboot, room};
use super::experiment_earlier::{earlier, of_probe};
use super::experiment_failed::failed;
use super::experiment_session::rules;
use super::experiment_trial;
use super::scope::culprits_of;
use super::tune::who;
use crate::exit::Exit;
use crate::output;
use crate::places::Places;
use jitterscope_experiment::{
    AutoPlan, Candidate, KnobChange, Step, StepRuns, estimate, runs_take,
};
use jitterscope_model::{Nanos, PutInOrder, SCHEMA_VERSION};
use jitterscope_platform::{CpuChoice, Machine};
use jitterscope_store::RunReader;
use jitterscope_tune::{
    Answer, Effect, Goal, How, Knob, RunCulprits, Select, StateDir, catalogue, plan,
};
use jitterscope_view::experiment as view;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Prints the plan; changes nothing.
///
/// # Errors
/// The machine or the runs cannot be read.
pub fn run(
    args: &ExperimentArgs,
    places: &Places,
    machine: &Machine,
    choice: &CpuChoice,
    stop: &AtomicBool,
) -> anyhow::Result<Exit> {
    let cpus = &choice.cpus;
    let goal = Goal::to_apply(machine, cpus.clone()).map_err(goal_error)?;
    let runs = places.runs()?;
    let stored = jitterscope_store::list_own(&runs).unwrap_or_default();
    let measured = measured(of_probe(args, cpus, &stored));
    let ranked_by = measured.as_ref().map(|(run, _)| run.clone());
    let select = measured.map_or(Select::All, |(_, measured)| Select::RunCulprits(measured));
    let found = plan(machine, &goal, &select, &args.except, false)?;
    let known = earlier(args, &runs, cpus, || {
        experiment_trial::overhead(args, machine, choice, places, stop)
    });
    let left = Nanos(
        args.budget
            .0
            .saturating_sub(runs_take(args.duration, known.overhead, RUNS).0),
    );
    let room = room(args, left);
    let (mut chosen, _) = candidates(&found, args.longest_wait, room);
    let every = plan(machine, &goal, &every(machine, &goal), &args.except, false)?;
    let (mut knobs, not_tried) = candidates(&every, args.longest_wait, room);
    match ranked_by {
        Some(_) => chosen.retain(|knob| knobs.contains(knob)),
        None => chosen.clone_from(&knobs),
    }
    knobs.order_by_key(|knob| !chosen.contains(knob));
    let undoing = |knob: &String| {
        let of = every.changes.iter().filter(|change| change.knob == *knob);
        of.filter_map(longest_undoing).max().unwrap_or_default()
    };
    let wait = chosen.iter().map(undoing).max().unwrap_or_default();
    let step = |what, runs, takes_ns| Step {
        what,
        runs,
        takes_ns,
    };
    let take = |runs: usize, wait: Nanos| {
        let time = runs_take(args.duration, known.overhead, runs);
        [Nanos(time.0.saturating_add(wait.0)); 2]
    };
    let mut steps = vec![step(StepRuns::Without, [RUNS; 2], take(RUNS, Nanos::ZERO))];
    if !chosen.is_empty() {
        steps.push(step(
            StepRuns::With,
            [RUNS; 2],
            take(RUNS, Nanos(wait.0.saturating_mul(2))),
        ));
        // The duration for all candidates is the longest: the kept ones are among them.
        let change = KnobChange::new(
            machine,
            StateDir::at(&args.state_dir),
            who(machine),
            goal,
            chosen.clone(),
        )
        .map_err(failed)?;
        let of = estimate(&change, &known, &rules(args)?);
        let pairs = of.runs.map(|pairs| 2 * pairs);
        steps.push(step(
            StepRuns::Pairs,
            pairs,
            of.takes_ns.unwrap_or_default(),
        ));
    }
    let takes_ns = [0, 1].map(|at| {
        steps
            .iter()
            .map(|step: &Step| step.takes_ns[at])
            .sum::<Nanos>()
    });
    let plan = AutoPlan {
        schema_version: SCHEMA_VERSION,
        ranked_by,
        candidates: knobs
            .iter()
            .map(|knob| Candidate {
                knob: knob.clone(),
                chosen: chosen.contains(knob),
                undone_within_ns: undoing(knob),
            })
            .collect(),
        needs_reboot: needs_reboot(&found),
        not_tried,
        fits_budget: takes_ns[0] <= args.budget,
        budget_ns: args.budget,
        takes_ns,
        steps,
    };
    if args.json {
        output::json(&view::auto_plan_json(&plan))?;
    } else {
        output::result(&view::auto_plan(&plan).terminal(output::style()))?;
    }
    Ok(Exit::Ok)
}

/// All knobs that an experiment may choose: those that answer a culprit for certain, and can be set now without being
/// named.
fn every(machine: &Machine, goal: &Goal) -> Select {
    let may_be_tried = |knob: &&Knob| {
        let certain = |answer: &Answer| answer.effect != Effect::Perhaps;
        knob.is_tame()
            && knob.how() == How::Now
            && knob.answers.iter().any(certain)
            && catalogue::moot(knob, machine, goal).is_none()
    };
    let knobs = catalogue::all().filter(may_be_tried);
    Select::Only(knobs.map(|knob| knob.id.to_owned()).collect())
}

/// The culprits of the newest run that names some, and its id.
fn measured(runs: Vec<PathBuf>) -> Option<(String, RunCulprits)> {
    runs.iter().find_map(|path| {
        let reader = RunReader::open(path).ok()?;
        let manifest = reader.manifest();
        let names = manifest.attributed && manifest.doubts().is_empty();
        names
            .then(|| Some((manifest.id.clone(), culprits_of(&reader).ok()?)))
            .flatten()
    })
}
