//! `annotate`: adds the marks of an application's own log to a stored run.

use crate::completion;
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::places::Places;
use anyhow::Context;
use clap::{Args, ValueHint};
use jitterscope_model::{MarkForm, RunManifest};
use jitterscope_platform::open_regular;
use jitterscope_source::marks::{MarkOptions, read_marks};
use jitterscope_store::{RunReader, add_marks, remove_marks, resolve};
use jitterscope_view::text::marks_report;
use jitterscope_view::{json, load};
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Arguments of `annotate`.
#[derive(Args, Debug)]
#[command(after_help = "\
Reads what a program says of its own time, and holds it against the stalls of the run: which stalls lie in each mark, \
what they explain of its length, and how often chance gives as much. report --full, --html, --markdown and --json show \
the same. A time without a zone is UTC or local, whichever lies within the run.

  jitterscope annotate latest gc.log                    java -Xlog:gc*,safepoint:file=gc.log:time
  jitterscope annotate latest slow.csv                  a table with columns such as time, duration_ms, name
  jitterscope annotate latest app.log --took            each line's last length of time ends at its time
  jitterscope annotate latest access.log --time-format '%d/%b/%Y:%H:%M:%S %z'")]
pub struct AnnotateArgs {
    /// The run: its id, its label (the newest with it), 'latest', or its folder
    #[arg(add = completion::runs())]
    pub run: String,
    /// The log
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present = "remove")]
    pub file: Option<PathBuf>,
    /// How it is written [default: found from its first line]
    #[arg(long, value_enum, value_name = "FORM")]
    pub form: Option<Written>,
    /// The format of times, as strftime has it: '%d/%b/%Y:%H:%M:%S %z'
    #[arg(long, value_name = "FORMAT")]
    pub time_format: Option<String>,
    /// The name of all marks [default: each its own]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The last length of time in a line is how long it took, and the line's time is its end; lines without one are no
    /// marks
    #[arg(long)]
    pub took: bool,
    /// Remove all marks from the run
    #[arg(long, conflicts_with_all = ["file", "form", "time_format", "name", "took", "json"])]
    pub remove: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// How a log is written.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Written {
    /// The JVM's unified log
    Jvm,
    /// A table with a line of column names
    Csv,
    /// Lines that begin with their time
    Log,
}

/// Logs that are added at the end of a recording.
#[derive(Args, Debug, Default)]
pub struct MarksArgs {
    /// Afterwards, hold this log of your application against the run: what annotate does; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub marks: Vec<PathBuf>,
}

impl MarksArgs {
    /// Adds the logs to a new run. A log that gives no marks is reported; the run stays.
    pub fn add(&self, run: &Path, manifest: &RunManifest) -> Exit {
        let mut exit = Exit::Ok;
        for file in &self.marks {
            let added = RunReader::with_manifest(run, manifest.clone())
                .map_err(anyhow::Error::from)
                .and_then(|run| add(&run, file, &MarkOptions::default()));
            if let Err(error) = added {
                output::error(&error.context("--marks"));
                exit = Exit::Failed;
            }
        }
        exit
    }
}

/// Runs `annotate`.
///
/// # Errors
/// The run or the log cannot be read, the log has no marks, or the run cannot be changed.
pub fn run(args: &AnnotateArgs, places: &Places) -> anyhow::Result<Exit> {
    let path = resolve(&places.runs()?, &args.run)?;
    let run = RunReader::open(&path)?;
    let Some(file) = &args.file else {
        let text = match remove_marks(&run)? {
            true => "the marks are removed",
            false => "the run has no marks",
        };
        output::result(&format!("{text}\n"))?;
        return Ok(Exit::Ok);
    };
    let options = MarkOptions {
        form: args.form.map(MarkForm::from),
        time_format: args.time_format.clone(),
        name: args.name.clone(),
        took: args.took,
    };
    if options.took && options.form.is_some_and(|form| form != MarkForm::Log) {
        return Err(UsageError("--took is for --form log: the others state lengths".into()).into());
    }
    add(&run, file, &options)?;
    let (_, summary) = load(&path)?;
    match (&summary.marks, args.json) {
        (_, true) => output::json_text(&json::render(&summary)?)?,
        (Some(marks), false) => {
            output::result(&marks_report(&summary, marks).terminal(output::style()))?;
        }
        (None, false) => {}
    }
    Ok(Exit::Ok)
}

/// Adds the marks of a log to a run.
fn add(run: &RunReader, file: &Path, options: &MarkOptions) -> anyhow::Result<()> {
    let start = run.manifest().started_realtime_ns();
    let span = start..start.saturating_add(run.manifest().duration().0);
    let name = file.file_name().unwrap_or(file.as_os_str());
    let name = jitterscope_model::visible_os(name).into_owned();
    let log = read_marks(BufReader::new(open_regular(file)?), name, options, span)
        .with_context(|| file.display().to_string())?;
    add_marks(run, log)?;
    Ok(())
}

impl From<Written> for MarkForm {
    fn from(written: Written) -> MarkForm {
        match written {
            Written::Jvm => MarkForm::Jvm,
            Written::Csv => MarkForm::Csv,
            Written::Log => MarkForm::Log,
        }
    }
}
