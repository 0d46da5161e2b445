//! `experiment --auto`: all that the audit advises, tried at once, sifted, and confirmed by fresh pairs.

use super::audit::goal_error;
use super::compare_with::answers;
use super::experiment::{ExperimentArgs, asked, rules};
use super::experiment_guard::{Guard, Guarded, Revert};
use super::experiment_lab::ProbeLab;
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
    Arm, Change, Experiment, Header, InForceIn, KnobChange, Outcome, SESSION_VERSION, Screened, Session,
    Subject, estimate, runs_take, screen,
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
pub(super) const RUNS: usize = 4;

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
    /// Why not everything was done; null where it was.
    unfinished: Option<String>,
}

/// The time that all of it may take, to its last run: only what undoes a change may come later.
#[derive(Clone, Copy, Debug)]
struct Budget {
    until: Instant,
}

impl Budget {
    fn of(time: Nanos) -> Budget {
        Budget { until: Instant::now() + Duration::from_nanos(time.0) }
    }

    fn left(self) -> Nanos {
        let left = self.until.saturating_duration_since(Instant::now());
        Nanos(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Said where time ran out before anything could be judged.
const USED_UP: &str = "the budget was used up before all candidates were measured, and nothing is kept";

/// Runs it.
///
/// # Errors
/// Nothing can be measured, the budget is too small for that, or the machine cannot be changed or put back.
pub fn run(
    args: &ExperimentArgs,
    places: &Places,
    machine: &Machine,
    measured: CpuChoice,
    stop: &AtomicBool,
) -> anyhow::Result<Exit> {
    let trying = runs_take(args.duration, 2 * RUNS);
    if args.budget < trying {
        let text = format!(
            "--budget {}: trying the candidates takes {trying} at least, {} runs of {}; give more, or a shorter \
             --duration",
            args.budget,
            2 * RUNS,
            args.duration
        );
        return Err(UsageError(text).into());
    }
    let budget = Budget::of(args.budget);
    let goal = Goal::to_apply(machine, measured.cpus.clone()).map_err(goal_error)?;
    let mut lab = probe_lab(args, machine, &measured, places)?;
    let Some(before) = runs(args, &mut lab, Arm::A, budget, stop)? else {
        anyhow::ensure!(stop.load(Ordering::Relaxed), "{USED_UP}");
        return Ok(Exit::Failed);
    };
    let evidence = evidence_of(&RunReader::open(Path::new(&before[0].path))?)?;
    let found = plan(machine, &goal, &Select::RunEvidence(evidence), &args.except, false)?;
    let (knobs, not_tried) = candidates(&found, args.longest_wait, room(args, budget.left()));
    let mut sifted = Sifted {
        schema_version: SCHEMA_VERSION,
        candidates: Vec::new(),
        needs_reboot: needs_reboot(&found),
        not_tried,
        confirmed: None,
        unfinished: None,
    };
    if !knobs.is_empty() {
        if !args.quiet {
            output::talk(format_args!("trying {}", knobs.join(", ")));
        }
        let mut guard = Guard::start(&args.state_dir, &knobs, Revert::Knobs, places)?;
        let mut bench = Bench { args, machine, goal: &goal, lab: &mut lab, guard: &mut guard, budget, stop };
        // A guard that hears no farewell undoes what is left.
        match bench.sift(&knobs, &before)? {
            None => sifted.unfinished = (!stop.load(Ordering::Relaxed)).then(|| USED_UP.to_owned()),
            Some(candidates) => {
                let kept: Vec<String> =
                    candidates.iter().filter(|c| c.kept).map(|c| c.knob.clone()).collect();
                sifted.candidates = candidates;
                if !kept.is_empty() {
                    match bench.confirm(places, &measured, kept)? {
                        Ok(outcome) => sifted.confirmed = Some(outcome),
                        Err(why) => sifted.unfinished = Some(why),
                    }
                }
            }
        }
        guard.farewell();
    }
    if args.json {
        output::json(&sifted)?;
    } else {
        output::result(&text(&sifted))?;
    }
    Ok(if stop.load(Ordering::Relaxed) { Exit::Failed } else { Exit::Ok })
}

/// What only a reboot can try.
pub(super) fn needs_reboot(found: &Plan) -> Vec<&'static str> {
    found.skipped.iter().filter(|s| s.because == Because::NeedsReboot).map(|s| s.knob).collect()
}

/// The longest undoing that leaves time for the runs with all candidates: it is waited for once before them, as it may
/// take as long to be in force, and once after.
pub(super) fn room(args: &ExperimentArgs, left: Nanos) -> Nanos {
    Nanos(left.0.saturating_sub(runs_take(args.duration, RUNS).0) / 2)
}

/// Runs of one arm; `None` where it was stopped or the next would end after the budget.
fn runs(
    args: &ExperimentArgs,
    lab: &mut dyn Subject,
    arm: Arm,
    budget: Budget,
    stop: &AtomicBool,
) -> anyhow::Result<Option<Vec<ComparedRun>>> {
    let mut made = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        if budget.left() < args.duration {
            return Ok(None);
        }
        let Some(run) = lab.measure(arm, stop)? else { return Ok(None) };
        made.push(run);
    }
    Ok(Some(made))
}

/// Knobs that can be tried and undone within the wait and what the budget leaves for it, and why others cannot.
pub(super) fn candidates(plan: &Plan, longest: Nanos, room: Nanos) -> (Vec<String>, Vec<(String, String)>) {
    let (mut knobs, mut not_tried): (Vec<String>, Vec<(String, String)>) = (Vec::new(), Vec::new());
    for change in &plan.changes {
        let undone = InForce::of(change.knob).map_or(Settles::Immediately, |declared| declared.rollback);
        let time = longest_undoing(change);
        let why = match time {
            Some(time) if time <= longest && time <= room => None,
            Some(time) if time <= longest => {
                Some(format!("undone {}, for which the budget leaves no time", undone.describe()))
            }
            _ => Some(format!("undone {}", undone.describe())),
        };
        let known = |all: &[String]| all.iter().any(|knob| knob == change.knob);
        match why {
            Some(why) if !not_tried.iter().any(|(knob, _)| knob == change.knob) => {
                not_tried.push((change.knob.to_owned(), why));
            }
            None if !known(&knobs) => knobs.push(change.knob.to_owned()),
            _ => {}
        }
    }
    knobs.retain(|knob| !not_tried.iter().any(|(other, _)| other == knob));
    (knobs, not_tried)
}

/// How long the undoing of a change takes at most; none where that cannot be told.
pub(super) fn longest_undoing(change: &jitterscope_tune::Change) -> Option<Nanos> {
    let undone = InForce::of(change.knob).map_or(Settles::Immediately, |declared| declared.rollback);
    let replaced = if let Op::Write { to, .. } = &change.op { to.as_str() } else { "" };
    undone.longest(replaced)
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

/// What the steps have in common.
struct Bench<'b> {
    args: &'b ExperimentArgs,
    machine: &'b Machine,
    goal: &'b Goal,
    lab: &'b mut ProbeLab,
    guard: &'b mut Guard,
    budget: Budget,
    stop: &'b AtomicBool,
}

impl Bench<'_> {
    fn change(&self, knobs: &[String]) -> anyhow::Result<KnobChange> {
        let dir = StateDir::at(&self.args.state_dir);
        Ok(KnobChange::new(self.machine, dir, who(self.machine), self.goal.clone(), knobs.to_vec())?)
    }

    /// All of them at once, judged by what each declares; undone when it returns. `None` where it was stopped, or the
    /// budget was used up.
    fn sift(&mut self, knobs: &[String], before: &[ComparedRun]) -> anyhow::Result<Option<Vec<Screened>>> {
        let Bench { args, budget, stop, .. } = *self;
        let mut change = self.change(knobs)?;
        let mut guarded = Guarded { change: &mut change, guard: Some(self.guard) };
        let measured = guarded.apply().map_err(anyhow::Error::from).and_then(|settles| {
            if !settle(settles, stop) {
                return Ok(None);
            }
            runs(args, self.lab, Arm::B, budget, stop)
        });
        let judged = measured.and_then(|after| {
            let judge = |after: Vec<ComparedRun>| Ok(screen(before, &after, knobs, args.margin, &answers)?);
            after.map(judge).transpose()
        });
        // What is not kept goes one by one, so that one that cannot be undone is told by name and keeps no other
        // from it; then what is kept, for the pairs begin without.
        let rejected =
            judged.as_ref().ok().and_then(Option::as_ref).into_iter().flatten().filter(|c| !c.kept);
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
        settles = settles.and(Guarded { change: &mut change, guard: Some(self.guard) }.revert()?);
        anyhow::ensure!(left.is_empty(), "{}", left.join("; "));
        let Some(candidates) = judged? else { return Ok(None) };
        if !settle(settles, stop) {
            return Ok(None);
        }
        Ok(Some(candidates))
    }

    /// Fresh pairs of all that was kept against none; or why there are none.
    fn confirm(
        &mut self,
        places: &Places,
        measured: &CpuChoice,
        kept: Vec<String>,
    ) -> anyhow::Result<Result<Outcome, String>> {
        let Bench { args, budget, stop, .. } = *self;
        let mut change = self.change(&kept)?;
        let mut rules = rules(args)?;
        let takes = estimate(&change, Some(args.duration), &rules, &[]);
        let [first, _] = takes.takes_ns.unwrap_or_default();
        if budget.left() < first {
            return Ok(Err(format!(
                "what is left of the budget is less than the {first} that {} pairs take: what is kept is not \
                 confirmed. jitterscope experiment --knob {} does that",
                rules.looks.first().pairs,
                kept.join(",")
            )));
        }
        let pair = Duration::from_nanos(first.0 / rules.looks.first().pairs as u64);
        rules.deadline = budget.until.checked_sub(pair);
        let seed = fastrand::u64(..);
        let header = Header {
            version: SESSION_VERSION,
            // As of an experiment with these knobs, which goes on with it.
            asked: asked(args, &change, &measured.cpus),
            seed,
            started_realtime_ns: realtime_ns(),
            boot_id: boot_id(self.machine),
        };
        let folder = places.runs()?.join(super::experiment::SESSIONS);
        let name = format!("{}-{:08x}", header.started_realtime_ns, seed as u32);
        let mut session = Session::begin(&folder.join(name), header).context("the pairs cannot be kept")?;
        let mut watcher = Watcher::new(args.quiet, rules.looks);
        let mut guarded = Guarded { change: &mut change, guard: Some(self.guard) };
        let outcome = jitterscope_experiment::run(Experiment {
            change: &mut guarded,
            subject: self.lab,
            session: &mut session,
            rules,
            answers: &answers,
            observer: &mut watcher,
            stop,
        })?;
        Ok(Ok(outcome))
    }
}

fn text(sifted: &Sifted) -> String {
    let kept: Vec<&str> = sifted.candidates.iter().filter(|c| c.kept).map(|c| c.knob.as_str()).collect();
    let goes_on = format!(
        "jitterscope experiment --knob {} --resume, with the other options as they were, goes on with the pairs.",
        kept.join(",")
    );
    let outcome = |outcome| view::outcome(outcome, &goes_on, output::style());
    let mut text = sifted.confirmed.as_ref().map_or_else(String::new, outcome);
    text.push_str(&view::sifted(
        &view::Sifted {
            candidates: &sifted.candidates,
            needs_reboot: &sifted.needs_reboot,
            not_tried: &sifted.not_tried,
            confirmed: sifted.confirmed.as_ref(),
            unfinished: sifted.unfinished.as_deref(),
        },
        output::style(),
    ));
    text
}

/// Refuses what does not go with it.
///
/// # Errors
/// A COMMAND was given, or an experiment is to go on.
pub fn check(args: &ExperimentArgs) -> Result<(), UsageError> {
    if !args.command.is_empty() || args.resume {
        return Err(UsageError(
            "--auto measures with a probe, from the start: without COMMAND and --resume".into(),
        ));
    }
    Ok(())
}
