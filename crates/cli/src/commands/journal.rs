//! `journal`: reads a pipeline's journal.

use crate::exit::{Exit, UsageError};
use crate::output;
use crate::places::Places;
use anyhow::Context;
use clap::{Args, ValueEnum};
use jitterscope_analyze::{JournalBuilder, JournalSummary};
use jitterscope_model::{JournalEntry, JournalReader, SCHEMA_VERSION, visible_json};
use jitterscope_platform::MappedFile;
use jitterscope_store::{RunReader, resolve};
use jitterscope_view::pipeline::journal as text;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The default number of records in a table.
const TABLE_ROWS: u64 = 20;
/// The end of a document without records.
const NO_RECORDS: &str = "[]\n}";

/// How a journal is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum JournalFormat {
    /// How many records, percentiles, faults
    #[default]
    Summary,
    /// A line a record
    Table,
    /// A line a record, for programs
    Csv,
    /// Summary and records
    Json,
}

/// Arguments of `journal`.
#[derive(Args, Debug)]
pub struct JournalArgs {
    /// The journal's file, or a run that keeps one: latest, an id, a label, a folder
    #[arg(default_value = "latest", value_name = "FILE")]
    pub journal: String,
    /// How to show it
    #[arg(long, value_enum, default_value = "summary", value_name = "FORMAT")]
    pub format: JournalFormat,
    /// Show this many records at most [default: 20 in a table, all as CSV and JSON]
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Print JSON
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

/// Runs `journal`. A damaged journal is printed up to the damage; the command then fails.
///
/// # Errors
/// The file or run does not exist, the journal is damaged, or stdout is closed.
pub fn run(args: &JournalArgs, places: &Places) -> anyhow::Result<Exit> {
    let path = find(&args.journal, places)?;
    let map = MappedFile::open(&path)?;
    let format = if args.json {
        JournalFormat::Json
    } else {
        args.format
    };
    let limit = args.limit.unwrap_or(if format == JournalFormat::Table {
        TABLE_ROWS
    } else {
        u64::MAX
    });
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut builder = JournalBuilder::new();
    JournalReader::new(map.as_ref()).for_each(|entry| builder.add(&entry));
    let summary = builder.finish();
    let entries = JournalReader::new(map.as_ref())
        .map_while(Result::ok)
        .take(limit);
    let shown = path.display().to_string();
    match format {
        JournalFormat::Summary => {
            output::result(&text::summary(&shown, &summary, output::style()))?
        }
        JournalFormat::Table => rows(&text::table_head(), entries, text::table_row)?,
        JournalFormat::Csv => rows(text::csv_head(), entries, text::csv_row)?,
        JournalFormat::Json => print_json(&shown, &summary, entries)?,
    }
    let left = summary.records.saturating_sub(limit as u64);
    if format == JournalFormat::Table && left > 0 {
        output::talk(format_args!("{left} more records; --limit shows more"));
    }
    match &summary.damage {
        Some(damage) => {
            anyhow::bail!(
                "{shown} is damaged behind its {} good records: {}",
                summary.records,
                damage.why
            )
        }
        None => Ok(Exit::Ok),
    }
}

/// The file of that name, or the journal of a run.
fn find(wanted: &str, places: &Places) -> anyhow::Result<PathBuf> {
    let file = Path::new(wanted);
    if file.is_file() {
        return Ok(file.to_path_buf());
    }
    let folder = resolve(&places.runs()?, wanted)
        .with_context(|| format!("'{wanted}' is neither a file nor a run"))?;
    let run = RunReader::open(&folder)?;
    if let Some(path) = run.journal() {
        return Ok(path);
    }
    let elsewhere = run
        .manifest()
        .pipeline
        .as_ref()
        .and_then(|pipeline| pipeline.journal.as_ref());
    Err(UsageError(match elsewhere {
        Some(journal) => {
            format!(
                "the run {} keeps its journal in {}: name that file",
                folder.display(),
                journal.path
            )
        }
        None => format!("the run {} has no journal", folder.display()),
    })
    .into())
}

/// Writes one line for each record, as it is read.
fn rows(
    head: &str,
    entries: impl Iterator<Item = JournalEntry>,
    row: fn(&JournalEntry) -> String,
) -> anyhow::Result<()> {
    output::to_stdout(|out| {
        out.write_all(head.as_bytes())?;
        for entry in entries {
            out.write_all(row(&entry).as_bytes())?;
        }
        Ok(())
    })
}

/// A journal as one document.
#[derive(Serialize, JsonSchema)]
pub struct Journal<'a> {
    schema_version: u32,
    /// The journal's file.
    path: &'a str,
    summary: &'a JournalSummary,
    /// The readable records in order, at most `--limit` of them.
    records: Vec<JournalEntry>,
}

/// Writes one document. Records are written as they are read, because there may be millions.
fn print_json(
    path: &str,
    summary: &JournalSummary,
    entries: impl Iterator<Item = JournalEntry>,
) -> anyhow::Result<()> {
    let empty = serde_json::to_string_pretty(&Journal {
        schema_version: SCHEMA_VERSION,
        path,
        summary,
        records: Vec::new(),
    })?;
    let head = empty
        .strip_suffix(NO_RECORDS)
        .context("the records are not the last field; this is a bug")?;
    output::to_stdout(|out| {
        write!(out, "{}[", visible_json(head))?;
        for (at, entry) in entries.enumerate() {
            let row = serde_json::to_string(&entry)?;
            let separator = if at == 0 { "" } else { "," };
            write!(out, "{separator}\n    {row}")?;
        }
        out.write_all(b"\n  ]\n}\n")
    })
}
