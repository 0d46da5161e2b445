//! `report`: shows a stored run, or one of its stalls.

use super::advice;
use super::gate::Gates;
use super::pictures::{self, PictureArgs};
use super::stall::{self, Which};
use crate::completion;
use crate::excerpt::{self, Document, ExcerptArgs, SinceArgs};
use crate::exit::{Exit, UsageError};
use crate::measured;
use crate::output;
use crate::places::{Places, program};
use crate::redact::Redact;
use anyhow::Context;
use clap::Args;
use jitterscope_analyze::RunSummary;
use jitterscope_analyze::periods::Effort;
use jitterscope_export::WholeFile;
use jitterscope_model::{KeyLevel, RunManifest};
use jitterscope_recording::reattributed;
use jitterscope_source::Moment;
use jitterscope_store::{RunReader, resolve};
use jitterscope_view::text::Next;
use jitterscope_view::timeline;
use jitterscope_view::{Style, json, load_by, load_redacted, sum_up, text};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The default number of the worst stalls.
const LISTED: usize = 10;

/// Arguments of `report`.
#[derive(Args, Debug)]
#[command(mut_arg("since", |arg| {
    arg.requires("json").conflicts_with("timeline").help(
        "--json: of lists that state when each entry began, only the entries since this moment; sums are those of the \
         whole run",
    )
}))]
pub struct ReportArgs {
    /// The run: its id, its label (the newest with it), 'latest', or its folder
    #[arg(default_value = "latest", add = completion::runs())]
    pub run: String,
    /// Print all that is known, on as many lines as it takes; --periods, --list, --all-cpus, --reattribute and
    /// --redact do so too. Of a stall: every record
    #[arg(long)]
    pub full: bool,
    /// Show a stall as a timeline, by the number that reports, tables and databases show
    #[arg(long, value_name = "STALL", group = "timeline")]
    pub stall: Option<u64>,
    /// Show a stall as a timeline, by its length: 1 is the longest
    #[arg(long, value_name = "RANK", group = "timeline", value_parser = clap::value_parser!(u32).range(1..))]
    pub worst: Option<u32>,
    /// Show the longest stall of a moment as a timeline: 21:40:07.200, UTC or local, a date and time, or an
    /// epoch
    #[arg(long, value_name = "TIME", group = "timeline")]
    pub at: Option<Moment>,
    /// How many of the worst stalls to list
    #[arg(long, value_name = "N")]
    pub list: Option<usize>,
    /// Look for periods of the stalls with all effort, and show all of them
    #[arg(long)]
    pub periods: bool,
    /// Attribute the stalls again from the raw trace that the run kept; the run stays as it is
    #[arg(long, conflicts_with = "timeline")]
    pub reattribute: bool,
    /// Show every CPU, however many there are
    #[arg(long)]
    pub all_cpus: bool,
    #[command(flatten)]
    pub pictures: PictureArgs,
    /// Also write the whole report as Markdown, for the summary page of a build
    #[arg(long, value_name = "FILE", conflicts_with_all = ["timeline", "chart", "html"])]
    pub markdown: Option<PathBuf>,
    #[command(flatten)]
    pub gates: Gates,
    #[command(flatten)]
    pub redact: Redact,
    /// Tell culprits apart by program, process, thread, executable, user, unit, pod or control group; what ran instead of a followed thread is
    /// by program always [default: program]
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub by: Option<Level>,
    /// Tell threads apart, in the brief report and in --full: short for --by thread
    #[arg(long, conflicts_with = "by")]
    pub threads: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub since: SinceArgs,
    #[command(flatten)]
    pub excerpt: ExcerptArgs,
}

/// How finely culprits are told apart.
#[derive(Clone, Copy, Debug, serde::Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// All that processes of one name do, with the same urgency, by whichever of their threads
    Program,
    /// The threads of a process together
    Process,
    /// Each thread by itself
    Thread,
    /// All that run the same file, whatever they call themselves
    Executable,
    /// All of a user, whatever they run
    User,
    /// All of a unit of systemd, or of a container
    Unit,
    /// All of a pod
    Pod,
    /// All of a control group
    Cgroup,
}

impl From<Level> for KeyLevel {
    fn from(level: Level) -> KeyLevel {
        match level {
            Level::Program => KeyLevel::Program,
            Level::Process => KeyLevel::Process,
            Level::Thread => KeyLevel::Thread,
            Level::Executable => KeyLevel::Executable,
            Level::User => KeyLevel::User,
            Level::Unit => KeyLevel::Unit,
            Level::Pod => KeyLevel::Pod,
            Level::Cgroup => KeyLevel::Cgroup,
        }
    }
}

/// Runs `report`.
///
/// # Errors
/// The run or stall does not exist, or cannot be read.
pub fn run(args: &ReportArgs, places: &Places) -> anyhow::Result<Exit> {
    args.gates.of_one_run()?;
    let only_shows =
        args.pictures.chart.is_some() || args.pictures.html.is_some() || args.which().is_some();
    if only_shows && !args.gates.all().is_empty() {
        return Err(UsageError(
            "--fail-if goes with the report of a run, not with a picture or one stall".into(),
        )
        .into());
    }
    let path = resolve(&places.runs()?, &args.run)?;
    if let Some(chart) = args.pictures.chart {
        pictures::draw(chart, &args.pictures, &path, args.redact, places)?;
        return Ok(Exit::Ok);
    }
    if let Some(out) = &args.pictures.html {
        pictures::write_page(out, &path, args.redact)?;
        return Ok(Exit::Ok);
    }
    if let Some(which) = args.which() {
        let style = Style {
            all_records: args.full,
            ..output::style()
        };
        let seen = stall::look(&path, &which, args.redact)?;
        if args.json {
            args.excerpt.print(Document::Stall, &seen.document())?;
        } else {
            output::result(&timeline::render(&seen.view, style))?;
        }
        return Ok(Exit::Ok);
    }
    let effort = if args.periods {
        Effort::THOROUGH
    } else {
        Effort::BRIEF
    };
    let style = Style {
        all_cpus: args.all_cpus,
        periods: args.periods,
        ..output::style()
    };
    let list = args.list.unwrap_or(LISTED);
    // Advice names programs and devices of this machine, and depends on the stored verdicts.
    let summary = match (args.reattribute, args.redact.on) {
        (true, redact) => print_plainly(args, reattributed(&path, list, effort, redact)?, style)?,
        (false, true) => print_plainly(args, load_redacted(&path, list, effort)?.1, style)?,
        (false, false) => {
            let level = args.level().unwrap_or(Level::Program).into();
            let (manifest, summary) = load_by(&path, list, effort, level)?;
            match args.json {
                true => args.print_json(&summary)?,
                false => {
                    let run = RunReader::with_manifest(&path, manifest)?;
                    print_summary(&run, &summary, style, args.form())?;
                }
            }
            summary
        }
    };
    if let Some(path) = &args.markdown {
        let title = format!("{} {}", summary.run.label, summary.run.id);
        let page = text::render(&summary, Style::default()).markdown(&title);
        WholeFile::open(path)
            .and_then(|file| file.write(page.as_bytes()))
            .with_context(|| format!("--markdown {}", path.display()))?;
    }
    args.gates.hold(None, &summary, Exit::Ok)
}

impl ReportArgs {
    fn which(&self) -> Option<Which> {
        let id = self.stall.map(Which::Id);
        let rank = || self.worst.map(|rank| Which::Rank(rank as usize));
        id.or_else(rank).or_else(|| self.at.clone().map(Which::At))
    }

    fn level(&self) -> Option<Level> {
        if self.threads {
            Some(Level::Thread)
        } else {
            self.by
        }
    }

    fn print_json(&self, summary: &RunSummary) -> anyhow::Result<()> {
        if !self.excerpt.is_part() && self.since.since.is_none() {
            return output::json_text(&json::render(summary)?);
        }
        let document = document(summary, &self.since)?;
        output::json(&self.excerpt.of(Document::Report, document)?)
    }

    fn form(&self) -> Form {
        let more = self.periods || self.all_cpus || self.list.is_some();
        Form::of(self.json, self.full || more)
    }
}

/// The report as JSON, with the entries since a moment.
///
/// # Errors
/// The moment is a time of day that the run does not have.
pub fn document(summary: &RunSummary, since: &SinceArgs) -> anyhow::Result<Value> {
    let mut document = serde_json::from_str(&json::render(summary)?)?;
    let start = summary.run.started_realtime_ns;
    let end = start.saturating_add(summary.run.duration_ns.0);
    if let Some(moment) = since.within(start, end)? {
        excerpt::since(&mut document, moment);
    }
    Ok(document)
}

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The answer on one screen.
    Brief,
    Full,
    Json,
}

impl Form {
    /// The form that options request; JSON takes precedence.
    pub fn of(json: bool, full: bool) -> Form {
        match (json, full) {
            (true, _) => Form::Json,
            (false, true) => Form::Full,
            (false, false) => Form::Brief,
        }
    }
}

/// Prints the report of the run in a folder, with its known manifest, and returns its summary.
///
/// # Errors
/// The run cannot be read, or stdout is closed.
pub fn print_run(path: &Path, manifest: RunManifest, form: Form) -> anyhow::Result<RunSummary> {
    let run = RunReader::with_manifest(path, manifest)?;
    let summary = sum_up(&run, LISTED, Effort::BRIEF)?;
    // A report that cannot be printed is not lost.
    print_summary(&run, &summary, output::style(), form).with_context(|| {
        format!(
            "the run is kept: {} report {}",
            program(path),
            summary.run.id
        )
    })?;
    Ok(summary)
}

fn print_plainly(
    args: &ReportArgs,
    summary: RunSummary,
    style: Style,
) -> anyhow::Result<RunSummary> {
    match args.json {
        true => args.print_json(&summary)?,
        false => output::result(&text::render(&summary, style).terminal(style))?,
    }
    Ok(summary)
}

fn print_summary(
    run: &RunReader,
    summary: &RunSummary,
    style: Style,
    form: Form,
) -> anyhow::Result<()> {
    let path = run.path();
    match form {
        Form::Json => output::json_text(&json::render(summary)?),
        Form::Full => {
            let mut report = advice::with_advice(text::render(summary, style), run, summary)?;
            if let Some(unlike) = measured::unlike_the_run_before(path, summary) {
                report.line("");
                report.warnings(vec![unlike]);
            }
            output::result(&report.terminal(style))
        }
        Form::Brief => {
            let next = Next {
                program: program(path),
                advice: advice::step(run, summary)?,
                unlike_the_last: measured::unlike_the_run_before(path, summary),
            };
            let mut text = text::brief(summary, &next, style);
            if let Some(marks) = &summary.marks {
                let report = text::marks_report(summary, marks);
                text += &format!("\n{}", report.terminal(style));
            }
            output::result(&text)
        }
    }
}
