//! `report`: a stored run again, or one of its stalls.

use super::tune_words::evidence_of;
use super::{audit_text, reattribute};
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::places::Places;
use crate::redact::Redact;
use clap::Args;
use jitterscope_analyze::periods::Effort;
use jitterscope_analyze::{RunSummary, WorstStall};
use jitterscope_model::{KeyLevel, SCHEMA_VERSION, Stall, TimelineItem, TimelineRow};
use jitterscope_platform::Machine;
use jitterscope_record::stall_timeline;
use jitterscope_report::timeline::{self, StallKind, TimelineView};
use jitterscope_report::{Style, json, load_by, load_periods, load_redacted, load_worst, text};
use jitterscope_store::{RunReader, resolve};
use jitterscope_tune::{Goal, Select, audit, plan};
use serde_json::json;
use std::path::Path;

/// The worst stalls listed unless said otherwise.
const WORST: usize = 10;
/// Settings named at the end of a report, at most.
const ADVICE: usize = 5;

/// Arguments of `report`.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// The run: its id, its label (the newest with it), 'latest', or its folder
    #[arg(default_value = "latest")]
    pub run: String,
    /// Show one stall as a timeline: 1 is the longest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub stall: Option<u32>,
    /// How many of the worst stalls to list
    #[arg(long, value_name = "N", default_value_t = WORST)]
    pub worst: usize,
    /// Look for periods of the stalls with all effort, and show all of them
    #[arg(long)]
    pub periods: bool,
    /// Attribute the stalls again from the raw trace that the run kept; the run stays as it is
    #[arg(long, conflicts_with = "stall")]
    pub reattribute: bool,
    /// Show every CPU, however many there are
    #[arg(long)]
    pub all_cpus: bool,
    #[command(flatten)]
    pub redact: Redact,
    /// Tell culprits apart by program, by process or by thread; what ran instead of a followed thread is
    /// by program always
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = Level::Program)]
    pub by: Level,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// How finely culprits are told apart.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Level {
    /// All that runs the same program with the same urgency together
    Program,
    /// The threads of a process together
    Process,
    /// Each thread by itself
    Thread,
}

impl From<Level> for KeyLevel {
    fn from(level: Level) -> KeyLevel {
        match level {
            Level::Program => KeyLevel::Program,
            Level::Process => KeyLevel::Process,
            Level::Thread => KeyLevel::Thread,
        }
    }
}

/// Runs it.
///
/// # Errors
/// There is no such run or stall, or it cannot be read.
pub fn run(args: &ReportArgs, places: &Places) -> anyhow::Result<Exit> {
    let path = resolve(&places.runs()?, &args.run)?;
    match args.stall {
        Some(rank) => print_stall(&path, rank as usize, args.json, args.redact)?,
        None => {
            let effort = if args.periods { Effort::THOROUGH } else { Effort::BRIEF };
            let style = Style { all_cpus: args.all_cpus, periods: args.periods, ..output::style() };
            let summary = match (args.reattribute, args.redact.on) {
                (true, redact) => reattribute::summary(&path, args.worst, effort, redact)?,
                (false, true) => load_redacted(&path, args.worst, effort)?.1,
                (false, false) => load_by(&path, args.worst, effort, args.by.into())?.1,
            };
            match (args.redact.on || args.reattribute, args.json) {
                // Advice names programs and devices of this machine, and rests on the verdicts that are stored.
                (true, false) => output::result(&text::render(&summary, style))?,
                _ => print_summary(&path, &summary, style, args.json)?,
            }
        }
    }
    Ok(Exit::Ok)
}

/// Prints the report of the run in a folder, and returns what it says.
///
/// # Errors
/// The run cannot be read, or stdout is closed.
pub fn print_run(path: &Path, as_json: bool) -> anyhow::Result<RunSummary> {
    let (_, summary) = load_periods(path, WORST, Effort::BRIEF)?;
    print_summary(path, &summary, output::style(), as_json)?;
    Ok(summary)
}

fn print_summary(path: &Path, summary: &RunSummary, style: Style, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        return output::json_text(&json::render(summary)?);
    }
    output::result(&with_advice(text::render(summary, style), path, summary)?)
}

/// A report with the settings that answer it at its end.
///
/// # Errors
/// The run cannot be read.
pub fn with_advice(mut text: String, path: &Path, summary: &RunSummary) -> anyhow::Result<String> {
    if let Some(advice) = advice(path, summary)? {
        text.push('\n');
        text.push_str(&advice);
    }
    Ok(text)
}

/// Which settings of this machine answer what was measured; nothing for a run of another machine, or one
/// without culprits.
fn advice(path: &Path, summary: &RunSummary) -> anyhow::Result<Option<String>> {
    let machine = Machine::host();
    let here = machine.read_trimmed("/proc/sys/kernel/hostname").unwrap_or_default();
    if summary.attribution.is_none() || summary.run.hostname != here {
        return Ok(None);
    }
    let run = RunReader::open(path)?;
    let cpus = &run.manifest().probe.cpus;
    // What a plan refuses is no advice: a run of all CPUs leaves nobody to do the machine's own work.
    let Some(goal) = Goal::for_advice(&machine, cpus) else { return Ok(None) };
    let left_out = cpus.difference(&goal.isolated);
    let evidence = evidence_of(&run)?;
    let audit = audit(&machine, &goal, Some(&evidence));
    let plan = plan(&machine, &goal, &Select::Evidence(evidence), &[], false)?;
    let left_out = Some(&left_out).filter(|cpus| !cpus.is_empty());
    Ok(Some(audit_text::advice(&audit, &plan, &run.manifest().id.to_string(), left_out, ADVICE)))
}

fn print_stall(path: &Path, rank: usize, as_json: bool, redact: Redact) -> anyhow::Result<()> {
    let run = RunReader::open(path)?;
    let (_, summary) = match redact.on {
        true => load_redacted(path, rank, Effort::BRIEF)?,
        false => load_worst(path, rank)?,
    };
    let Some(worst) = summary.worst.get(rank - 1) else {
        let text = format!(
            "--stall {rank}: this run has {}, counting those that began together once",
            match summary.worst.len() {
                1 => "1 stall".into(),
                n => format!("{n} stalls"),
            }
        );
        return Err(UsageError(text).into());
    };
    let stall = find(&run, worst)?;
    let (rows, problem) = match stall_timeline(&run, &stall) {
        Ok(rows) if rows.is_empty() => (rows, Some("No kernel event was recorded inside this stall.".into())),
        Ok(rows) => (rows, None),
        // An error's text may name paths.
        Err(_) if redact.on => (Vec::new(), Some("The timeline cannot be made.".into())),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let together = worst.together.as_ref().map(|together| {
        format!("It is the longest of stalls that began together on CPUs {}.", together.cpus)
    });
    let remarks = together.into_iter().chain(problem).collect();
    let view = TimelineView {
        stall: worst.stall,
        cpu: worst.cpu,
        kind: StallKind::of_probe(&summary.probe.kind),
        victim: worst.victim.clone(),
        duration: worst.duration_ns,
        start_realtime_ns: worst.start_realtime_ns,
        start_offset: worst.start_offset_ns,
        rows: if redact.on { redacted(rows) } else { rows },
        parts: worst.parts.clone(),
        remarks,
    };
    if as_json {
        output::json(&stall_json(&view, worst))
    } else {
        output::result(&timeline::render(&view, output::style()))
    }
}

fn find(run: &RunReader, worst: &WorstStall) -> anyhow::Result<Stall> {
    for stall in run.stalls()? {
        let stall = stall?;
        if stall.id == worst.stall {
            return Ok(stall);
        }
    }
    anyhow::bail!("stall {} is not in gaps.parquet", worst.stall.0)
}

fn stall_json(view: &TimelineView, worst: &WorstStall) -> serde_json::Value {
    json!({
        "schema_version": SCHEMA_VERSION,
        "stall": worst,
        "victim": view.victim,
        "frames": view.rows,
        "remarks": view.remarks,
    })
}

/// The shape of a timeline alone: how deep, from when to when.
fn redacted(rows: Vec<TimelineRow>) -> Vec<TimelineRow> {
    rows.into_iter().map(|row| TimelineRow { item: TimelineItem::LeftOut, ..row }).collect()
}
