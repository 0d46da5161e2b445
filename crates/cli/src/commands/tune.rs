//! `tune plan|apply|rollback|status`: the only commands that change the machine's settings.

use super::audit::goal_error;
use super::scope::Scope;
use crate::ask::ask;
use crate::exit::{Exit, UsageError};
use crate::output::{self, style};
use crate::places::Places;
use crate::units::some_duration;
use clap::{Args, Subcommand, ValueEnum};
use jitterscope_model::Nanos;
use jitterscope_platform::Machine;
use jitterscope_tune::{
    DEFAULT_STATE_DIR, Drift, Goal, HostWriter, Interrupts, OnDrift, OnRefusal, Plan, PlanError,
    Profile, RollbackError, Select, StateDir, Who, apply, catalogue, plan, rollback, rollback_only,
    status,
};
use jitterscope_view::{counted, cpus_text, tuning};
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Arguments of `tune`.
#[derive(Args, Debug)]
pub struct TuneArgs {
    #[command(subcommand)]
    command: TuneCommand,
}

/// What to do.
#[derive(Subcommand, Debug)]
enum TuneCommand {
    /// Show each change with its reason; change nothing
    Plan(PlanArgs),
    /// Apply the changes; every original is written down first
    Apply(ApplyArgs),
    /// Put everything, or what some knobs changed, back as it was
    Rollback(RollbackArgs),
    /// Show what is applied, which run or user applied it, and what has changed since
    Status(StatusArgs),
    /// Compare /proc/interrupts before and after a while: which interrupts reached the CPUs
    Interrupts(InterruptsArgs),
}

#[derive(Args, Debug)]
struct InterruptsArgs {
    #[command(flatten)]
    scope: Scope,
    /// How long to wait between the two looks, such as 10s
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = some_duration)]
    wait: Nanos,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Names of profiles on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProfileName {
    /// Keep everybody off the CPUs
    Isolation,
    /// Keep packet processing off them
    Network,
    /// Keep them awake and at speed
    Power,
    /// All three
    All,
}

/// Which knobs.
#[derive(Args, Debug)]
struct PlanArgs {
    #[command(flatten)]
    scope: Scope,
    /// The knobs of a profile
    #[arg(long, value_enum, conflicts_with_all = ["only", "run"])]
    profile: Option<ProfileName>,
    /// These knobs only, by id; the one way to name risky ones and security mitigations
    #[arg(
        long,
        value_name = "ID,...",
        value_delimiter = ',',
        conflicts_with = "run"
    )]
    only: Vec<String>,
    /// Leave these knobs out, by id
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    except: Vec<String>,
    /// Make it last as well: drop-ins for sysctl.d, tmpfiles.d, systemd and the boot line
    #[arg(long)]
    persist: bool,
    /// Show each change and each reason, on as many lines as that takes
    #[arg(long, conflicts_with = "json")]
    full: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Where the journal lies.
#[derive(Args, Debug)]
struct State {
    /// Folder of the journal, which remembers what is applied
    #[arg(long, value_name = "DIR", env = "JITTERSCOPE_STATE", default_value = DEFAULT_STATE_DIR)]
    state_dir: PathBuf,
}

#[derive(Args, Debug)]
struct ApplyArgs {
    #[command(flatten)]
    plan: PlanArgs,
    #[command(flatten)]
    state: State,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Stop at the first change that the kernel refuses, rather than go on
    #[arg(long)]
    stop: bool,
}

#[derive(Args, Debug)]
struct RollbackArgs {
    #[command(flatten)]
    state: State,
    /// Only what these knobs changed, by id, and their lines in drop-ins; `persist` names the drop-ins
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    only: Vec<String>,
    /// Do not ask; values that another program has changed since stay, for --force or --keep
    #[arg(short, long)]
    yes: bool,
    /// Restore the original even if another program has changed the value since
    #[arg(long, conflicts_with = "keep")]
    force: bool,
    /// Keep values that another program has changed since, and forget our change
    #[arg(long)]
    keep: bool,
    /// A tree of files that resembles a machine
    #[arg(long, value_name = "DIR", hide = true)]
    root: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
struct StatusArgs {
    #[command(flatten)]
    state: State,
    /// A tree of files that resembles a machine
    #[arg(long, value_name = "DIR", hide = true)]
    root: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs `tune`.
///
/// # Errors
/// The arguments contradict each other, the machine cannot be read, or another process is changing it.
pub fn run(args: &TuneArgs, places: &Places) -> anyhow::Result<Exit> {
    match &args.command {
        TuneCommand::Plan(args) => {
            let (plan, _) = make(args, places)?;
            shown(
                args.json,
                || tuning::plan_json(&plan),
                || {
                    tuning::plan(&plan, args.full, style())
                        + &tuning::how_to_apply(&plan, args.persist, style())
                },
            )?;
            Ok(Exit::Ok)
        }
        TuneCommand::Apply(args) => run_apply(args, places),
        TuneCommand::Rollback(args) => run_rollback(args),
        TuneCommand::Interrupts(args) => run_interrupts(args),
        TuneCommand::Status(args) => {
            let machine = args.root.as_deref().map_or_else(Machine::host, Machine::at);
            let status = status(&machine, &StateDir::at(&args.state.state_dir))?;
            shown(
                args.json,
                || tuning::status_json(&status),
                || tuning::status(&status, style()),
            )?;
            Ok(Exit::Ok)
        }
    }
}

/// Prints a result as JSON or as text.
fn shown<T: Serialize>(
    as_json: bool,
    value: impl FnOnce() -> T,
    text: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    if as_json {
        output::json(&value())
    } else {
        output::result(&text())
    }
}

fn make(args: &PlanArgs, places: &Places) -> anyhow::Result<(Plan, Machine)> {
    let machine = args.scope.machine();
    let measured = args.scope.measured(places)?;
    let (cpus, why) = args
        .scope
        .cpus(&machine, measured.as_ref().map(|m| &m.cpus))?;
    let goal = Goal::to_apply(&machine, cpus).map_err(goal_error)?;
    if let Some(why) = why.filter(|_| !args.json) {
        output::talk(format!(
            "{}: {why} (choose with --cpus)",
            cpus_text(&goal.isolated)
        ));
    }
    let select = match (args.profile, args.only.is_empty(), measured) {
        (Some(ProfileName::Isolation), ..) => Select::Profile(Profile::Isolation),
        (Some(ProfileName::Network), ..) => Select::Profile(Profile::Network),
        (Some(ProfileName::Power), ..) => Select::Profile(Profile::Power),
        (Some(ProfileName::All), ..) => Select::All,
        (None, false, _) => Select::Only(args.only.clone()),
        (None, true, Some(measured)) => Select::RunCulprits(measured.culprits),
        (None, true, None) => {
            let text =
                "say which knobs: --run RUN (what it measured), --profile NAME or --only ID,...";
            return Err(UsageError(text.into()).into());
        }
    };
    let plan = plan(&machine, &goal, &select, &args.except, args.persist).map_err(|e| match e {
        PlanError::UnknownKnob { .. } => UsageError(e.to_string()).into(),
        other => anyhow::Error::from(other),
    })?;
    Ok((plan, machine))
}

fn run_apply(args: &ApplyArgs, places: &Places) -> anyhow::Result<Exit> {
    let (plan, machine) = make(&args.plan, places)?;
    if !plan.changes.is_empty() && !args.yes {
        output::talk_page(&tuning::plan(&plan, args.plan.full, style()));
        if !ask(&format!("Apply {}?", counted(plan.changes.len(), "change")))? {
            output::talk("nothing was changed");
            return Ok(Exit::Failed);
        }
    }
    let on_refusal = if args.stop {
        OnRefusal::Stop
    } else {
        OnRefusal::GoOn
    };
    let mut hands = HostWriter::new(&machine);
    let report = apply(
        &mut hands,
        &StateDir::at(&args.state.state_dir),
        &plan,
        who(&machine),
        on_refusal,
    )?;
    shown(
        args.plan.json,
        || tuning::apply_json(&report),
        || tuning::applied(&plan, &report, style()),
    )?;
    let refused = tuning::refused(&report)
        .into_iter()
        .chain(denied(&args.plan, &plan))
        .chain(
            (report.not_tried > 0)
                .then(|| format!("{} not tried", counted(report.not_tried, "change"))),
        );
    let refused: Vec<String> = refused.collect();
    // An error at the end, so that a script does not go on without the requested changes.
    anyhow::ensure!(refused.is_empty(), "not applied: {}", refused.join("; "));
    Ok(Exit::Ok)
}

/// Named knobs for which the plan has no change.
fn denied(args: &PlanArgs, plan: &Plan) -> Vec<String> {
    let named = |knob: &str| args.only.iter().any(|id| id == knob);
    let denied = plan
        .skipped
        .iter()
        .filter(|s| named(s.knob) && s.why.is_denial());
    denied
        .map(|s| format!("{}: {}", s.knob, tuning::skip_reason(&s.why)))
        .collect()
}

fn run_interrupts(args: &InterruptsArgs) -> anyhow::Result<Exit> {
    let machine = args.scope.machine();
    let (cpus, _) = args.scope.cpus(&machine, None)?;
    let goal = Goal::to_audit(&machine, cpus).map_err(goal_error)?;
    let look = || {
        machine
            .read("/proc/interrupts")
            .map(|text| Interrupts::parse(&text))
    };
    let before = look()?;
    std::thread::sleep(Duration::from_nanos(args.wait.0));
    let diff = before.until(&look()?, &goal.isolated);
    shown(args.json, || &diff, || tuning::interrupts(&diff))?;
    Ok(Exit::Ok)
}

fn run_rollback(args: &RollbackArgs) -> anyhow::Result<Exit> {
    let machine = args.root.as_deref().map_or_else(Machine::host, Machine::at);
    let dir = StateDir::at(&args.state.state_dir);
    let now = status(&machine, &dir)?;
    if let Some(id) = args
        .only
        .iter()
        .find(|id| *id != "persist" && catalogue::find(id).is_none())
    {
        let similar = catalogue::similar(id);
        let hint = if similar.is_empty() {
            String::new()
        } else {
            format!("; did you mean {}?", similar.join(", "))
        };
        return Err(UsageError(format!("there is no knob '{id}'{hint}")).into());
    }
    if !now.active && args.only.is_empty() {
        output::talk("nothing is applied: there is nothing to roll back");
        if args.json {
            output::json(&tuning::status_json(&now))?;
        }
        return Ok(Exit::Ok);
    }
    if !args.yes && now.active {
        output::talk_page(&tuning::status(&now, style()));
        let question = match args.only.as_slice() {
            [] => "Put all of it back?".to_owned(),
            only => format!("Put back what {} changed?", only.join(", ")),
        };
        if !ask(&question)? {
            output::talk("nothing was changed");
            return Ok(Exit::Failed);
        }
    }
    let mut decide = |drift: &Drift| -> OnDrift {
        if args.force {
            return OnDrift::Restore;
        }
        if args.keep {
            return OnDrift::Keep;
        }
        let question = format!(
            "{} was {}, we made it {}, and somebody has made it {} since. Put {} back?",
            drift.path, drift.original, drift.ours, drift.now, drift.original
        );
        match args.yes {
            true => OnDrift::Later,
            false => match ask(&question) {
                Ok(true) => OnDrift::Restore,
                Ok(false) => OnDrift::Keep,
                Err(_) => OnDrift::Later,
            },
        }
    };
    let hands = &mut HostWriter::new(&machine);
    let report = match args.only.as_slice() {
        [] => rollback(hands, &dir, &mut decide)?,
        only => rollback_only(hands, &dir, only, &mut decide).map_err(|e| match e {
            RollbackError::NotApplied { .. } => UsageError(e.to_string()).into(),
            RollbackError::State(e) => anyhow::Error::from(e),
        })?,
    };
    shown(
        args.json,
        || tuning::rollback_json(&report),
        || tuning::rolled_back(&report, style()),
    )?;
    Ok(if report.unsettled().next().is_some() {
        Exit::Failed
    } else {
        Exit::Ok
    })
}

/// The user and process, for the journal.
pub(super) fn who(machine: &Machine) -> Who {
    let status = machine.read("/proc/self/status").unwrap_or_default();
    let uid = status
        .lines()
        .find_map(|line| line.strip_prefix("Uid:"))
        .and_then(|ids| ids.split_whitespace().next())
        .and_then(|id| id.parse().ok())
        .unwrap_or(0);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos());
    Who {
        uid,
        name: ["SUDO_USER", "LOGNAME", "USER"]
            .iter()
            .find_map(|v| std::env::var(v).ok()),
        pid: std::process::id(),
        command: crate::given::given().join(" "),
        at_realtime_ns: u64::try_from(now).unwrap_or(u64::MAX),
    }
}
