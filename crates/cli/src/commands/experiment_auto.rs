//! `experiment --auto`: tries all advised knobs at once, rejects those without effect, and confirms the rest with fresh
//! pairs.

use super::audit::goal_error;
use super::compare_with::answers;
use super::experiment_args::ExperimentArgs;
use super::experiment_ending::end;
use super::experiment_failed::failed;
use super::experiment_guard::{Guard, Guarded, Revert};
use super::experiment_probe::probe_runner;
use super::experiment_runners::ProbeRunner;
use super::experiment_session::{SESSIONS, asked, begin, last, rules, session};
use super::experiment_watcher::Watcher;
use super::scope::culprits_of;
use super::tune::who;
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::places::Places;
use anyhow::Context;
use jitterscope_analyze::compare::ComparedRun;
use jitterscope_experiment::{
    Arm, Change, Chosen, Ended, Experiment, Header, InForceIn, KnobChange, Known, NoChange,
    NotTried, Observer, Outcome, RunOverhead, Runner, Screened, Session, estimate, runs_take,
    screen,
};
use jitterscope_model::{AnyVersion, Nanos};
use jitterscope_platform::{CpuChoice, Machine};
use jitterscope_store::RunReader;
use jitterscope_tune::{
    Goal, InForce, Op, Plan, RunCulprits, Select, Settles, SkipReason, StateDir, plan,
};
use jitterscope_view::experiment as view;
use jitterscope_view::report::Report;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The number of runs without and with all candidates: the fewest with which a test can be significant.
pub(super) const RUNS: usize = 4;

#[derive(Debug)]
struct Sifted {
    /// The candidates, in the order of the audit.
    candidates: Vec<Screened>,
    /// Knobs that need a reboot.
    needs_reboot: Vec<String>,
    /// Knobs that cannot be tried here, with the reason.
    not_tried: Vec<(String, AnyVersion<NotTried>)>,
    /// The confirmation of all kept knobs with fresh pairs; null if none was kept, or time ran out.
    confirmed: Option<Outcome>,
    /// Why the experiment is incomplete; null if it is complete.
    unfinished: Option<String>,
}

impl Sifted {
    fn shown(&self) -> view::Sifted<'_> {
        view::Sifted {
            candidates: &self.candidates,
            needs_reboot: &self.needs_reboot,
            not_tried: &self.not_tried,
            confirmed: self.confirmed.as_ref(),
            unfinished: self.unfinished.as_deref(),
        }
    }
}

/// The time limit up to the last run: only the undoing of a change may come later.
#[derive(Clone, Copy, Debug)]
struct Budget {
    until: Instant,
}

impl Budget {
    fn of(time: Nanos) -> Budget {
        Budget {
            until: Instant::now() + Duration::from_nanos(time.0),
        }
    }

    fn left(self) -> Nanos {
        let left = self.until.saturating_duration_since(Instant::now());
        Nanos(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// The hint after a stop.
const GOES_ON: &str = "The same command with --resume goes on.";
/// The message if time ran out before any verdict.
const USED_UP: &str = "the budget was used up before all candidates were measured: none is judged, and the runs are kept";

/// Runs `experiment --auto`.
///
/// # Errors
/// Nothing can be measured, the budget is too small, or the machine cannot be changed or restored.
pub fn run(
    args: &ExperimentArgs,
    places: &Places,
    machine: &Machine,
    measured: CpuChoice,
    stop: &AtomicBool,
) -> anyhow::Result<Exit> {
    if !args.resume {
        fits(args, 2 * RUNS)?;
    }
    let budget = Budget::of(args.budget);
    let goal = Goal::to_apply(machine, measured.cpus.clone()).map_err(goal_error)?;
    let mut runner = probe_runner(args, machine, &measured, places)?;
    let mut session = trial(args, machine, &measured, places)?;
    let bound = Bound { args, budget, stop };
    let Some(before) = bound.runs(&mut runner, Arm::A, &mut session)? else {
        anyhow::ensure!(stop.load(Ordering::Relaxed), "{USED_UP}. {GOES_ON}");
        output::talk(format_args!("stopped before anything was tried. {GOES_ON}"));
        return Ok(Exit::Failed);
    };
    let Chosen {
        candidates: knobs,
        needs_reboot,
        not_tried,
    } = match session.tried().cloned() {
        Some(chosen) => chosen,
        None => {
            // All runs together, because a culprit that comes once a second may be missing from any one of them.
            let each = before
                .iter()
                .map(|run| culprits_of(&RunReader::open(Path::new(&run.path))?));
            let all = each
                .collect::<anyhow::Result<Vec<_>>>()?
                .into_iter()
                .reduce(RunCulprits::and);
            let select = Select::RunCulprits(all.unwrap_or_default());
            let found = plan(machine, &goal, &select, &args.except, false)?;
            let (candidates, not_tried) =
                candidates(&found, args.longest_wait, room(args, budget.left()));
            let needs_reboot = needs_reboot(&found)
                .into_iter()
                .map(str::to_owned)
                .collect();
            let chosen = Chosen {
                candidates,
                needs_reboot,
                not_tried,
            };
            session.choose(chosen.clone())?;
            chosen
        }
    };
    let mut sifted = Sifted {
        candidates: Vec::new(),
        needs_reboot,
        not_tried,
        confirmed: None,
        unfinished: None,
    };
    if !knobs.is_empty() {
        if !args.quiet {
            output::talk(format_args!("trying {}", knobs.join(", ")));
        }
        let mut guard = Guard::start(&args.state_dir, &knobs, Revert::Knobs, places)?;
        let mut bench = Bench {
            bound,
            machine,
            goal: &goal,
            runner: &mut runner,
            guard: &mut guard,
        };
        // A guard without the end message undoes what is left.
        match bench.sift(&knobs, &before, &mut session)? {
            None => {
                let why = if stop.load(Ordering::Relaxed) {
                    "it was stopped"
                } else {
                    USED_UP
                };
                sifted.unfinished = Some(format!("{why}. {GOES_ON}"));
            }
            Some(candidates) => {
                let kept: Vec<String> = candidates
                    .iter()
                    .filter(|c| c.kept)
                    .map(|c| c.knob.clone())
                    .collect();
                sifted.candidates = candidates;
                if !kept.is_empty() {
                    match bench.confirm(
                        places,
                        &measured,
                        kept,
                        session.header.started_realtime_ns,
                    )? {
                        Ok(outcome) => sifted.confirmed = Some(outcome),
                        Err(why) => sifted.unfinished = Some(why),
                    }
                }
            }
        }
        guard.finish();
    }
    let report = report(&sifted);
    if args.json {
        output::json(&view::sifted_json(&sifted.shown()))?;
    } else {
        output::result(&report.terminal(output::style()))?;
    }
    let title = format!("Experiment: all that is advised for CPU {}", measured.cpus);
    let confirmed = sifted.confirmed.as_ref();
    let ended = match (stop.load(Ordering::Relaxed), &sifted.unfinished) {
        (true, _) => Ended::Stopped,
        (false, Some(_)) => Ended::Deadline,
        (false, None) => Ended::Decided,
    };
    end(args, &title, confirmed, ended, report)
}

/// Knobs that need a reboot.
pub(super) fn needs_reboot(found: &Plan) -> Vec<&'static str> {
    found
        .skipped
        .iter()
        .filter(|s| matches!(s.why, SkipReason::NeedsReboot { .. }))
        .map(|s| s.knob)
        .collect()
}

/// The longest undoing that leaves time for the runs with all candidates. The time passes twice: before those runs,
/// because taking effect may last as long, and after them.
pub(super) fn room(args: &ExperimentArgs, left: Nanos) -> Nanos {
    Nanos(
        left.0
            .saturating_sub(runs_take(args.duration, RunOverhead::default(), RUNS).0)
            / 2,
    )
}

/// Refuses a budget that is too small for this many runs.
fn fits(args: &ExperimentArgs, runs: usize) -> Result<(), UsageError> {
    let trying = runs_take(args.duration, RunOverhead::default(), runs);
    if args.budget >= trying {
        return Ok(());
    }
    Err(UsageError(format!(
        "--budget {}: trying the candidates takes {trying} at least, {runs} runs of {}; give more, or a shorter \
         --duration",
        args.budget, args.duration
    )))
}

/// The session with the runs for screening the candidates: a new one, or with `--resume` the last.
fn trial(
    args: &ExperimentArgs,
    machine: &Machine,
    measured: &CpuChoice,
    places: &Places,
) -> anyhow::Result<Session> {
    let except = match args.except.as_slice() {
        [] => String::new(),
        knobs => format!(" except {}", knobs.join(", ")),
    };
    let what = format!(
        "all that is advised{except}, undone within {}",
        args.longest_wait
    );
    let nothing = NoChange {
        what,
        removes: Vec::new(),
    };
    let folder = places.runs()?.join(SESSIONS);
    let of = |session: &Session, arm| session.block.iter().filter(|run| run.arm == arm).count();
    let made = |session: &Session| {
        let [without, with] = [Arm::A, Arm::B].map(|arm| of(session, arm));
        format!("{without} runs without the candidates and {with} with all of them")
    };
    let session = session(
        args,
        machine,
        &folder,
        asked(args, &nothing, &measured.cpus),
        &made,
    )?;
    if session
        .block
        .iter()
        .any(|run| run.boot_id != session.boot_id)
    {
        return Err(UsageError(
            "--resume: the machine was started anew since, which changes more than what is tried; begin again, without \
             --resume"
                .into(),
        )
        .into());
    }
    fits(args, (2 * RUNS).saturating_sub(session.block.len()))?;
    Ok(session)
}

/// The limits of every step.
#[derive(Clone, Copy)]
struct Bound<'b> {
    args: &'b ExperimentArgs,
    budget: Budget,
    stop: &'b AtomicBool,
}

impl Bound<'_> {
    /// The runs of one arm, including those of the session; `None` if it was stopped or the next run would exceed the
    /// budget.
    fn runs(
        self,
        runner: &mut dyn Runner,
        arm: Arm,
        session: &mut Session,
    ) -> anyhow::Result<Option<Vec<ComparedRun>>> {
        let earlier: Vec<_> = session
            .block
            .iter()
            .filter(|run| run.arm == arm)
            .map(|run| run.run.clone())
            .collect();
        let mut made = Vec::with_capacity(RUNS);
        for path in earlier {
            made.push(runner.load(&path)?);
        }
        let mut watcher = Watcher::new(self.args.quiet, rules(self.args)?.looks);
        while made.len() < RUNS {
            if self.budget.left() < self.args.duration {
                return Ok(None);
            }
            let Some(run) = runner.measure(arm, self.stop)? else {
                return Ok(None);
            };
            session.add_run(arm, PathBuf::from(&run.path), None)?;
            made.push(run);
            watcher.measured(arm, made.len(), RUNS);
        }
        Ok(Some(made))
    }
}

/// Knobs that can be tried and undone within the longest wait and the budget, and the reasons for the others.
pub(super) fn candidates(
    plan: &Plan,
    longest: Nanos,
    room: Nanos,
) -> (Vec<String>, Vec<(String, AnyVersion<NotTried>)>) {
    let (mut knobs, mut not_tried) = (Vec::new(), Vec::new());
    for change in &plan.changes {
        let why = match longest_undoing(change) {
            Some(time) if time <= longest && time <= room => None,
            Some(time) if time <= longest => Some(NotTried::NoTimeLeft),
            _ => Some(NotTried::UndoneTooLate),
        };
        let known = |all: &[String]| all.iter().any(|knob| knob == change.knob);
        match why {
            Some(why) if !not_tried.iter().any(|(knob, _)| knob == change.knob) => {
                not_tried.push((change.knob.to_owned(), why.into()));
            }
            None if !known(&knobs) => knobs.push(change.knob.to_owned()),
            _ => {}
        }
    }
    knobs.retain(|knob| !not_tried.iter().any(|(other, _)| other == knob));
    (knobs, not_tried)
}

/// The longest undoing of a change; `None` if unknown.
pub(super) fn longest_undoing(change: &jitterscope_tune::Change) -> Option<Nanos> {
    let undone =
        InForce::of(change.knob).map_or(Settles::Immediately, |declared| declared.rollback);
    let replaced = if let Op::Write { to, .. } = &change.op {
        to.as_str()
    } else {
        ""
    };
    undone.longest(replaced)
}

/// Waits; false if it was stopped.
fn settle(settles: InForceIn, stop: &AtomicBool) -> bool {
    let wait = match settles {
        InForceIn::Within(time) => Duration::from_nanos(time.0),
        InForceIn::Now | InForceIn::Unknown => Duration::ZERO,
    };
    let until = Instant::now() + wait;
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
    }
    !stop.load(Ordering::Relaxed)
}

/// The common data of the steps.
struct Bench<'b> {
    bound: Bound<'b>,
    machine: &'b Machine,
    goal: &'b Goal,
    runner: &'b mut ProbeRunner,
    guard: &'b mut Guard,
}

impl Bench<'_> {
    fn change(&self, knobs: &[String]) -> anyhow::Result<KnobChange> {
        let dir = StateDir::at(&self.bound.args.state_dir);
        KnobChange::new(
            self.machine,
            dir,
            who(self.machine),
            self.goal.clone(),
            knobs.to_vec(),
        )
        .map_err(failed)
    }

    /// Tries all candidates at once and screens each by its declaration; undoes them before it returns. `None` if it
    /// was stopped, or the budget was used up.
    fn sift(
        &mut self,
        knobs: &[String],
        before: &[ComparedRun],
        session: &mut Session,
    ) -> anyhow::Result<Option<Vec<Screened>>> {
        let bound = self.bound;
        let Bound { args, stop, .. } = bound;
        let judge =
            |after: Vec<ComparedRun>| Ok(screen(before, &after, knobs, args.margin, &answers)?);
        if session.block.iter().filter(|run| run.arm == Arm::B).count() >= RUNS {
            // All runs were made before an interruption; no candidate is applied now.
            return bound
                .runs(self.runner, Arm::B, session)?
                .map(judge)
                .transpose();
        }
        let mut change = self.change(knobs)?;
        let mut guarded = Guarded {
            change: &mut change,
            guard: Some(self.guard),
        };
        let measured = guarded.apply().map_err(failed).and_then(|settles| {
            if !settle(settles, stop) {
                return Ok(None);
            }
            bound.runs(self.runner, Arm::B, session)
        });
        let judged = measured.and_then(|after| after.map(judge).transpose());
        // Rejected knobs are undone one by one, so that one that cannot be undone is named and does not block others.
        // The kept knobs follow, because the pairs begin without them.
        let rejected = judged
            .as_ref()
            .ok()
            .and_then(Option::as_ref)
            .into_iter()
            .flatten()
            .filter(|c| !c.kept);
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
                Err(error) => left.push(view::experiment_error(&error)),
            }
        }
        settles = settles.and(
            Guarded {
                change: &mut change,
                guard: Some(self.guard),
            }
            .revert()
            .map_err(failed)?,
        );
        anyhow::ensure!(left.is_empty(), "{}", left.join("; "));
        let Some(candidates) = judged? else {
            return Ok(None);
        };
        if !settle(settles, stop) {
            return Ok(None);
        }
        Ok(Some(candidates))
    }

    /// Confirms all kept knobs with fresh pairs, or explains why not. `--resume` continues pairs begun since the
    /// screening.
    fn confirm(
        &mut self,
        places: &Places,
        measured: &CpuChoice,
        kept: Vec<String>,
        tried: u64,
    ) -> anyhow::Result<Result<Outcome, String>> {
        let Bound { args, budget, stop } = self.bound;
        let mut change = self.change(&kept)?;
        let mut rules = rules(args)?;
        let known = Known {
            run: Some(args.duration),
            ..Known::default()
        };
        let takes = estimate(&change, &known, &rules);
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
        // The same settings as an experiment with these knobs, which can continue it.
        let asked = asked(args, &change, &measured.cpus);
        let folder = places.runs()?.join(SESSIONS);
        let begun = |header: &Header| header.asked == asked && header.started_realtime_ns >= tried;
        let earlier = if args.resume {
            last(self.machine, &folder, &begun).0
        } else {
            None
        };
        let mut session = match earlier {
            Some(session) => session,
            None => begin(self.machine, &folder, asked).context("the pairs cannot be kept")?,
        };
        let mut watcher = Watcher::new(args.quiet, rules.looks);
        let mut guarded = Guarded {
            change: &mut change,
            guard: Some(self.guard),
        };
        let outcome = jitterscope_experiment::run(Experiment {
            change: &mut guarded,
            runner: self.runner,
            session: &mut session,
            rules,
            answers: &answers,
            observer: &mut watcher,
            stop,
        })
        .map_err(failed)?;
        Ok(Ok(outcome))
    }
}

fn report(sifted: &Sifted) -> Report {
    let outcome = |outcome| view::outcome(outcome, GOES_ON);
    let mut report = sifted.confirmed.as_ref().map(outcome).unwrap_or_default();
    report.append(view::sifted(&sifted.shown()));
    report
}

/// Refuses arguments that do not fit.
///
/// # Errors
/// A COMMAND was given.
pub fn check(args: &ExperimentArgs) -> Result<(), UsageError> {
    if !args.command.is_empty() {
        return Err(UsageError(
            "--auto measures with a probe: without COMMAND".into(),
        ));
    }
    Ok(())
}
