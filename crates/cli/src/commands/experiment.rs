//! `experiment`: whether a change helps.

use super::audit::goal_error;
use super::compare_with::answers;
use super::diff::percent;
use super::experiment_earlier::earlier;
use super::experiment_guard::{Guard, Guarded, Revert};
use super::experiment_lab::CommandLab;
use super::experiment_probe::{self, ProbeArg, probe_lab};
use super::experiment_watcher::Watcher;
use super::leftovers::PutRight;
use super::tune::who;
use super::{experiment_across, experiment_auto, experiment_auto_plan};
use crate::exit::{Exit, UsageError};
use crate::measured;
use crate::output;
use crate::places::Places;
use crate::reading::ClockArgs;
use crate::signals;
use crate::units::{duration, some_duration};
use anyhow::Context;
use clap::{Args, ValueHint};
use jitterscope_analyze::compare::Looks;
use jitterscope_analyze::gate::check_name;
use jitterscope_experiment::{
    Arm, Change, CommandChange, Declared, Ended, Experiment, ExperimentError, Header, KnobChange, NoChange,
    NoteError, Notes, Predicted, Rules, SESSION_VERSION, Session, Subject, estimate, interleaves,
};
use jitterscope_model::{ClockKind, CpuList, CpuSet, Nanos};
use jitterscope_platform::{CpuChoice, Machine};
use jitterscope_tune::{DEFAULT_STATE_DIR, Goal, StateDir, boot_id, realtime_ns};
use jitterscope_view::experiment as view;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Sessions lie here, beside the runs.
pub(super) const SESSIONS: &str = "experiments";
/// Void pairs that are too many.
const MOST_VOID: usize = 4;
/// How long another experiment may take to end.
const NOTED: Duration = Duration::from_millis(500);

/// Arguments of `experiment`.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("change").required(true).args(["knob", "apply", "env", "auto"]))]
#[command(after_help = "\
Arms take turns in pairs, each in an order drawn by lot. There are looks after 8, 12 and 16 pairs; what is \
decided then is decided. However it ends, killed or not, the machine is left as it was found.

  jitterscope experiment --knob vmstat --dry-run
  jitterscope experiment --knob vmstat,governor --probe wakeup
  jitterscope experiment --knob irq-aff --probe none --for rx-thread --cpus 3
  jitterscope experiment --apply 'systemctl stop irqbalance' --revert 'systemctl start irqbalance'
  jitterscope experiment --apply 'ethtool -L eth0 combined 1' --revert 'ethtool -L eth0 combined 4' \
    --applied-when 'ip link show eth0 | grep -q LOWER_UP' --settles-in 10s --removes 'eth0*'
  jitterscope experiment --knob isolcpus-domain,nohz-full --cpus 3 --across-reboot
  jitterscope experiment --env MALLOC_ARENA_MAX=1 -- ./my-server --benchmark")]
pub struct ExperimentArgs {
    /// Try these knobs of the catalogue, by id
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub(super) knob: Vec<String>,
    /// Try what this command does
    #[arg(long, value_name = "CMD", requires = "revert")]
    apply: Option<String>,
    /// The command that undoes it
    #[arg(long, value_name = "CMD", requires = "apply")]
    revert: Option<String>,
    /// --apply: the change is in force as soon as this command succeeds; it is asked until then
    #[arg(long, value_name = "CMD", requires = "apply")]
    applied_when: Option<String>,
    /// --apply: its undoing is in force as soon as this command succeeds
    #[arg(long, value_name = "CMD", requires = "apply")]
    reverted_when: Option<String>,
    /// --apply: how long the change, and its undoing, take at most until they are in force. An arm begins then, or
    /// as soon as a command shows it; where that does not by then, the pair does not count [default: no time at all,
    /// --longest-wait where a command shows it]
    #[arg(long, value_name = "TIME", requires = "apply", value_parser = some_duration)]
    settles_in: Option<Nanos>,
    /// What --apply or --env is to remove: names or kinds of culprits, with * for anything. They are decided by
    /// themselves, and a pair in which they are not back without the change does not count
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with_all = ["knob", "auto"])]
    removes: Vec<String>,
    /// Try this in the environment of the COMMAND; may be repeated
    #[arg(long, value_name = "NAME=VALUE", requires = "command", value_parser = assignment)]
    env: Vec<String>,
    /// Try all that the audit advises for what is measured, sift it, and confirm what is kept
    #[arg(long)]
    pub(super) auto: bool,
    /// The knobs are set at boot: measure without them now, and with them after a reboot, when the same command is
    /// started again. Nothing is changed: it says what to add to the boot line
    #[arg(long, requires = "knob", requires = "cpus", conflicts_with_all = ["auto", "command", "dry_run"])]
    across_reboot: bool,
    /// --auto: how long all of it may take
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = some_duration)]
    pub(super) budget: Nanos,
    /// --auto: leave these knobs out, by id
    #[arg(long, value_name = "ID,...", value_delimiter = ',', requires = "auto")]
    pub(super) except: Vec<String>,
    /// Measure with this probe
    #[arg(long, value_enum, default_value = "spin", conflicts_with = "command")]
    pub(super) probe: ProbeArg,
    /// --probe none: what belongs on the CPUs, a thread's name or a process id; the others take it from that
    #[arg(long = "for", value_name = "COMM|PID", conflicts_with = "command")]
    pub(super) owner: Option<String>,
    /// Measure this: how long it takes, and what its threads lose
    #[arg(last = true, value_name = "COMMAND", num_args = 1.., value_hint = ValueHint::CommandWithArguments)]
    pub(super) command: Vec<String>,
    /// CPUs to measure, and to set the knobs for [default: the isolated ones, else the highest]; for pipeline
    /// those of producer, accumulator and, with a third, journaller [default: two threads, wherever they run]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(super) cpus: Option<CpuList>,
    /// How long each run measures; a COMMAND is measured from its start to its end
    #[arg(long, short, default_value = "8s", value_name = "TIME", value_parser = some_duration,
          conflicts_with = "command")]
    pub(super) duration: Nanos,
    /// The shortest stall [default: 300ns, 5us where CLOCK_MONOTONIC_RAW is read, 50us for wakeup and a
    /// COMMAND]; of a pipeline the slow messages [default: 50us late]
    #[arg(long, short, value_name = "TIME", value_parser = some_duration)]
    pub(super) threshold: Option<Nanos>,
    #[command(flatten)]
    pub(super) clock: ClockArgs,
    /// Pairs before the first look, 8 or more; the others follow in proportion
    #[arg(long, value_name = "N", default_value_t = 8)]
    pairs: usize,
    /// The share of a figure that counts as no difference; of stolen shares 0.1 points always do
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = percent)]
    pub(super) margin: f64,
    /// The longest wait until a change is undone; beyond it the arms do not take turns
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = duration)]
    pub(super) longest_wait: Nanos,
    /// Tell how long it will take and what it could find; change and measure nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Go on with the same experiment, where one was stopped or killed
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) resume: bool,
    /// Name of this experiment; its runs get it as label, with -A and -B
    #[arg(long, short, default_value = "experiment", value_name = "NAME")]
    pub(super) label: String,
    /// Folder of the journal, which remembers what is applied
    #[arg(long, value_name = "DIR", env = "JITTERSCOPE_STATE", default_value = DEFAULT_STATE_DIR)]
    pub(super) state_dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Say nothing on stderr but errors
    #[arg(long, short)]
    pub(super) quiet: bool,
}

fn assignment(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, _)) if !name.is_empty() => Ok(text.to_owned()),
        _ => Err("must be NAME=VALUE".into()),
    }
}

impl ExperimentArgs {
    /// Whether it only tells what it would do.
    pub fn dry_run(&self) -> bool {
        self.dry_run
    }
}

/// Runs it.
///
/// # Errors
/// The arguments cannot be meant, nothing can be measured, or the machine cannot be changed or put back.
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
        // Who may not change the machine is told before anything is measured.
        drop(StateDir::at(&args.state_dir).lock()?);
        put_right_first(&args.state_dir)?;
    }
    if args.across_reboot {
        return experiment_across::run(args, places, machine, (measured, rules), &stop);
    }
    if args.auto {
        experiment_auto::check(args)?;
        if args.dry_run {
            return experiment_auto_plan::run(args, places, &machine, &measured.cpus);
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
        let known = earlier(args, &runs, &measured.cpus);
        let told = estimate(&*change, known.run, &rules, &known.totals);
        if args.json {
            output::json(&told)?;
        } else {
            output::result(&view::estimate(&told, &asked, output::style()))?;
        }
        return Ok(Exit::Ok);
    }
    let interleaved = interleaves(&*change, &rules);
    // With another --longest-wait the same change may take turns or not: those are two experiments.
    let asked = if interleaved { asked } else { format!("{asked}; not interleaved") };
    let mut session =
        session(args, &machine, &runs.join(SESSIONS), asked, &|session| made(session, interleaved))?;
    let mut subject = subject(args, machine, measured, places)?;
    // Nothing on the machine is changed by an environment variable.
    let mut guard = match args.env.is_empty() {
        true => Some(Guard::start(&args.state_dir, &args.knob, revert, places)?),
        false => None,
    };
    let mut watcher = Watcher::new(args.quiet, rules.looks);
    let mut guarded = Guarded { change: &mut *change, guard: guard.as_mut() };
    let made = jitterscope_experiment::run(Experiment {
        change: &mut guarded,
        subject: &mut *subject,
        session: &mut session,
        rules,
        answers: &answers,
        observer: &mut watcher,
        stop: &stop,
    });
    // Where the machine could not be put back, the guard tries once more.
    let left = matches!(
        made,
        Err(ExperimentError::NotReverted(_)
            | ExperimentError::Command { .. }
            | ExperimentError::WantsTerminal { .. })
    );
    match guard {
        Some(guard) if !left => guard.farewell(),
        other => drop(other),
    }
    let outcome = made?;
    if args.json {
        output::json(&outcome)?;
    } else {
        let goes_on = "The same command with --resume goes on.";
        output::result(&view::outcome(&outcome, goes_on, output::style()))?;
    }
    Ok(if outcome.ended == Ended::Stopped { Exit::Failed } else { Exit::Ok })
}

/// What is fixed beforehand.
///
/// # Errors
/// Too few pairs for a first look.
pub(super) fn rules(args: &ExperimentArgs) -> Result<Rules, UsageError> {
    let looks = Looks::first_after(args.pairs).ok_or_else(|| {
        UsageError(format!("--pairs {}: the first look takes 8 pairs at least", args.pairs))
    })?;
    let longest_wait = args.longest_wait.max(Nanos(1));
    Ok(Rules { looks, margin: args.margin, longest_wait, most_void: MOST_VOID, deadline: None })
}

fn cpus_to_measure(args: &ExperimentArgs, machine: &Machine) -> anyhow::Result<CpuChoice> {
    let chosen = measured::choose(machine, args.cpus.as_ref(), "--cpus")?;
    if let (Some(because), false) = (&chosen.because, args.quiet || !args.probe.is_on_cpus()) {
        output::talk(format_args!("measuring CPU {}: {because}", chosen.cpus));
    }
    Ok(chosen)
}

/// What an experiment before it left, where its guard was killed, too.
fn put_right_first(state_dir: &Path) -> anyhow::Result<()> {
    let mut found = PutRight::default();
    found.experiment(state_dir);
    for what in &found.done {
        output::talk(format_args!("put right first: {what}"));
    }
    anyhow::ensure!(found.failed.is_empty(), "{}", found.failed.join("; "));
    Ok(())
}

/// Where it is noted what undoes a command's change; an ordinary user may have no place for that.
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
            Declared { seen_by: seen_by.clone(), within: args.settles_in.or(asked).unwrap_or_default() }
        };
        let change = CommandChange::new(apply, revert, notes);
        let (applied, reverted) = (when(&args.applied_when), when(&args.reverted_when));
        return Ok(Box::new(change.declaring(applied, reverted, removes(args))));
    }
    if !args.env.is_empty() {
        return Ok(Box::new(NoChange { what: args.env.join(" "), removes: removes(args) }));
    }
    let goal = Goal::to_apply(machine, cpus.clone()).map_err(goal_error)?;
    let dir = StateDir::at(&args.state_dir);
    let knobs = KnobChange::new(machine, dir, who(machine), goal, args.knob.clone());
    Ok(Box::new(knobs.map_err(|error| match error {
        ExperimentError::NotApplied(_) | ExperimentError::Plan(_) => UsageError(error.to_string()).into(),
        other => anyhow::Error::from(other),
    })?))
}

/// What the user says that the change is to remove.
fn removes(args: &ExperimentArgs) -> Vec<Predicted> {
    args.removes.iter().cloned().map(Predicted::Pattern).collect()
}

/// Everything that must be the same for runs to belong together.
pub(super) fn asked(args: &ExperimentArgs, change: &dyn Change, cpus: &CpuSet) -> String {
    let measured = match args.command.as_slice() {
        [] => experiment_probe::asked(args, cpus),
        command => command.join(" "),
    };
    let threshold = args.threshold.map_or_else(String::new, |threshold| format!(", from {threshold} on"));
    let clock = match args.clock.kind() {
        Some(ClockKind::Tsc) => ", by the TSC",
        Some(ClockKind::MonotonicRaw) => ", by CLOCK_MONOTONIC_RAW",
        None => "",
    };
    let mut what = change.describe();
    let signs = [("applied when", &args.applied_when), ("reverted when", &args.reverted_when)];
    for (word, sign) in signs.iter().filter_map(|(word, sign)| Some((word, sign.as_ref()?))) {
        what += &format!(", {word} {sign}");
    }
    if let Some(time) = args.settles_in {
        what += &format!(", settles in {time}");
    }
    if !args.removes.is_empty() {
        what += &format!(", removes {}", args.removes.join(", "));
    }
    format!(
        "{what}; measured by {measured}{threshold}{clock}; margin {} %; first look at {} pairs",
        args.margin * 100.0,
        args.pairs
    )
}

/// The session in which an experiment is kept: a new one, or with --resume the last of what was asked. `made` tells
/// what that has already.
pub(super) fn session(
    args: &ExperimentArgs,
    machine: &Machine,
    folder: &Path,
    asked: String,
    made: &dyn Fn(&Session) -> String,
) -> anyhow::Result<Session> {
    if !args.resume {
        return begin(machine, folder, asked);
    }
    let (found, why) = last(machine, folder, &|header| header.asked == asked);
    if let Some(session) = found {
        if !args.quiet {
            output::talk(format_args!("going on after {}", made(&session)));
        }
        return Ok(session);
    }
    let text = format!("--resume: there is no such experiment in {}: {asked}", folder.display());
    Err(match why {
        Some(error) => anyhow::Error::from(error).context(text),
        None => UsageError(text).into(),
    })
}

/// The last session that is meant, and why another one could not be read: that is not the one, and is told only where
/// none is.
pub(super) fn last(
    machine: &Machine,
    folder: &Path,
    meant: &dyn Fn(&Header) -> bool,
) -> (Option<Session>, Option<ExperimentError>) {
    let mut sessions: Vec<PathBuf> = std::fs::read_dir(folder)
        .map(|all| all.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    sessions.sort();
    let mut why = None;
    for path in sessions.iter().rev() {
        match Session::resume(path, &boot_id(machine)) {
            Ok(session) if meant(&session.header) => return (Some(session), None),
            Ok(_) => {}
            Err(error) => why = Some(error),
        }
    }
    (None, why)
}

/// A new session.
pub(super) fn begin(machine: &Machine, folder: &Path, asked: String) -> anyhow::Result<Session> {
    let seed = fastrand::u64(..);
    let now = realtime_ns();
    let header =
        Header { version: SESSION_VERSION, asked, seed, started_realtime_ns: now, boot_id: boot_id(machine) };
    Ok(Session::begin(&folder.join(format!("{now}-{:08x}", seed as u32)), header)?)
}

/// What a session has already.
fn made(session: &Session, interleaved: bool) -> String {
    if interleaved {
        return format!("{} pairs", session.pairs.len());
    }
    let of = |arm| session.block.iter().filter(|run| run.arm == arm).count();
    format!("{} runs without the change and {} with it", of(Arm::A), of(Arm::B))
}

pub(super) fn subject(
    args: &ExperimentArgs,
    machine: Machine,
    measured: CpuChoice,
    places: &Places,
) -> anyhow::Result<Box<dyn Subject>> {
    if args.command.is_empty() {
        return Ok(Box::new(probe_lab(args, &machine, &measured, places)?));
    }
    Ok(Box::new(CommandLab {
        machine,
        command: args.command.clone(),
        env: args.env.clone(),
        threshold: args.threshold.unwrap_or(Nanos(50_000)),
        clock: args.clock.kind(),
        label: args.label.clone(),
        runs: places.runs()?,
        quiet: args.quiet,
    }))
}
