//! `doctor`: what can be observed on this machine.

use super::leftovers::{self, PutRight};
use super::machine_threshold::{self, MachineThreshold};
use super::require;
use crate::exit::Exit;
use crate::output;
use crate::places::Places;
use crate::redact::Redact;
use crate::signals;
use anyhow::Context;
use clap::Args;
use jitterscope_analyze::{Redactor, SourceSummary};
use jitterscope_model::{SCHEMA_VERSION, SourceReport, visible};
use jitterscope_platform::Machine;
use jitterscope_source::sources;
use jitterscope_tune::{DEFAULT_STATE_DIR, StateDir, status};
use jitterscope_view::doctor::{changed_by_tune, render, verdict};
use jitterscope_view::json::with_words;
use jitterscope_view::tuning::{StatusWithWords, status_json};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What stands for a text that may contain names.
const UNNAMED: &str = "left out";

/// Arguments of `doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// End with code 4 unless this source is available; may be repeated
    #[arg(long, value_name = "SOURCE")]
    pub require: Vec<String>,
    /// Put right what killed recordings left: tracing instances, unfinished runs, histories of watches, selftest's
    /// settings, what a command of an experiment changed
    #[arg(long)]
    pub clean: bool,
    /// Folder of tune's journal, which remembers what it changed
    #[arg(long, value_name = "DIR", env = "JITTERSCOPE_STATE", default_value = DEFAULT_STATE_DIR)]
    pub state_dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub redact: Redact,
}

/// What can be observed on this machine.
#[derive(Serialize, JsonSchema)]
pub struct Doctor<'a> {
    /// Version of this structure.
    schema_version: u32,
    /// What recordings can show, in a sentence.
    verdict: String,
    sources: Vec<SourceSummary>,
    /// What killed recordings left; empty with `--clean`.
    leftovers: &'a [String],
    /// What `--clean` put right.
    removed: &'a [String],
    /// What could not be put right or looked at. With `--redact`, these three lists state only how many there are.
    failed: &'a [String],
    /// What tune has applied; null if its journal is unreadable, and with `--redact`.
    tune: Option<StatusWithWords<'a>>,
    /// The threshold of probes that spin; null until the first recording chooses it.
    threshold: Option<MachineThreshold>,
}

impl<'a> Doctor<'a> {
    fn of(
        sources: &[SourceReport],
        leftovers: &'a [String],
        failed: &'a [String],
        threshold: Option<MachineThreshold>,
    ) -> Doctor<'a> {
        let words = sources.iter().map(SourceSummary::from).map(with_words);
        Doctor {
            schema_version: SCHEMA_VERSION,
            verdict: verdict(sources),
            sources: words.collect(),
            leftovers,
            removed: &[],
            failed,
            tune: None,
            threshold,
        }
    }
}

/// What can be observed on this machine, for programs.
///
/// # Errors
/// None in practice: JSON can represent it.
pub fn document(places: &Places) -> anyhow::Result<Value> {
    let machine = Machine::host();
    let state_dir = Path::new(DEFAULT_STATE_DIR);
    let left = leftovers::look(&machine, places, state_dir);
    let mut failed = left.failed;
    let tuned = status(&machine, &StateDir::at(state_dir));
    if let Err(error) = &tuned {
        failed.push(unknown_tuning(error));
    }
    let tuned = tuned.ok();
    let of_runs = |runs: PathBuf| machine_threshold::of_machine(&runs, &machine, None);
    let threshold = places.runs().ok().and_then(of_runs);
    let found = Doctor {
        tune: tuned.as_ref().map(status_json),
        ..Doctor::of(&sources(&machine), &left.done, &failed, threshold)
    };
    Ok(serde_json::to_value(found)?)
}

fn unknown_tuning(error: &impl std::fmt::Display) -> String {
    format!("what tune changed is not known: {error}")
}

/// Runs `doctor`.
///
/// # Errors
/// A required source is missing, or stdout is closed.
pub fn run(args: &DoctorArgs, places: &Places) -> anyhow::Result<Exit> {
    // The examination mounts tracefs: Ctrl-C waits until it is unmounted again.
    let _stop = signals::stop_flag(places).context("signal handlers cannot be set")?;
    let machine = Machine::host();
    let (removed, mut failed) = if args.clean {
        let mut put_right = leftovers::clean(&machine, places, &args.state_dir);
        put_right.histories(&machine, places);
        (put_right.done, put_right.failed)
    } else {
        (Vec::new(), Vec::new())
    };
    let could_not_clean = !failed.is_empty();
    let left = if args.clean {
        Vec::new()
    } else {
        let PutRight {
            done,
            failed: unknown,
        } = leftovers::look(&machine, places, &args.state_dir);
        failed.extend(unknown);
        done
    };
    let tuned = status(&machine, &StateDir::at(&args.state_dir));
    if let Err(error) = &tuned {
        failed.push(unknown_tuning(error));
    }
    let found = sources(&machine);
    let (shown, [left, removed, failed]) = if args.redact.on {
        let redactor = Redactor::new();
        let sources = found.iter().map(|source| redactor.source(source));
        let lists = [left, removed, failed].map(|list| vec![UNNAMED.to_owned(); list.len()]);
        (sources.collect(), lists)
    } else {
        (found.clone(), [left, removed, failed])
    };
    let tuned = tuned.ok().filter(|_| !args.redact.on);
    let of_runs = |runs: PathBuf| machine_threshold::of_machine(&runs, &machine, None);
    let threshold = places.runs().ok().and_then(of_runs);
    if args.json {
        output::json(&Doctor {
            removed: &removed,
            tune: tuned.as_ref().map(status_json),
            ..Doctor::of(&shown, &left, &failed, threshold)
        })?;
    } else {
        let mut text = render(&shown).terminal(output::style());
        match &threshold {
            Some(of) => writeln!(
                text,
                "threshold: {} for probes that spin; a clock read takes up to {}, storing a stall up to {} (run {})",
                of.threshold,
                of.costs.read_tail_ns,
                of.costs.store_ns,
                visible(&of.run)
            )?,
            None => writeln!(text, "threshold: the first recording chooses it")?,
        }
        for what in &removed {
            writeln!(text, "put right: {}", visible(what))?;
        }
        if args.clean && removed.is_empty() && failed.is_empty() {
            writeln!(text, "nothing was left over")?;
        }
        for what in &left {
            writeln!(text, "left over: {}", visible(what))?;
        }
        for what in &failed {
            writeln!(text, "failed: {}", visible(what))?;
        }
        if !left.is_empty() {
            writeln!(text, "Put them right with: jitterscope doctor --clean")?;
        }
        if let Some(tuned) = &tuned {
            text.push_str(&changed_by_tune(tuned));
        }
        output::result(&text)?;
    }
    require::check(&found, &args.require)?;
    Ok(if could_not_clean {
        Exit::Failed
    } else {
        Exit::Ok
    })
}
