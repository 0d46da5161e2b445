//! `doctor`: what this machine lets us see.

use super::leftovers::{self, PutRight};
use super::require;
use super::tune_words::{self, counted, named};
use crate::exit::Exit;
use crate::output;
use crate::places::Places;
use crate::signals;
use anyhow::Context;
use clap::Args;
use jitterscope_model::{SCHEMA_VERSION, SourceReport, SourceStatus, visible};
use jitterscope_platform::Machine;
use jitterscope_source::sources;
use jitterscope_tune::{DEFAULT_STATE_DIR, NowIs, StateDir, Status, called, status};
use owo_colors::OwoColorize;
use serde_json::json;
use std::fmt::Write;
use std::path::PathBuf;

/// More changes than these are counted rather than listed: moving threads makes hundreds.
const MOST_CHANGES: usize = 12;

/// Arguments of `doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// End with code 4 unless this source is available; may be repeated
    #[arg(long, value_name = "SOURCE")]
    pub require: Vec<String>,
    /// Put right what killed recordings left: tracing instances, unfinished runs, selftest's settings, what a
    /// command of an experiment changed
    #[arg(long)]
    pub clean: bool,
    /// Folder of tune's journal, which remembers what it changed
    #[arg(long, value_name = "DIR", env = "JITTERSCOPE_STATE", default_value = DEFAULT_STATE_DIR)]
    pub state_dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs it.
///
/// # Errors
/// Something required is missing, or stdout is closed.
pub fn run(args: &DoctorArgs, places: &Places) -> anyhow::Result<Exit> {
    // Looking mounts tracefs: Ctrl-C waits for the moment that it takes to unmount it again.
    let _stop = signals::stop_flag(places).context("signal handlers cannot be set")?;
    let machine = Machine::host();
    let (removed, mut failed) = if args.clean {
        let PutRight { done, failed } = leftovers::clean(&machine, places, &args.state_dir);
        (done, failed)
    } else {
        (Vec::new(), Vec::new())
    };
    let could_not_clean = !failed.is_empty();
    let left = if args.clean {
        Vec::new()
    } else {
        let PutRight { done, failed: unknown } = leftovers::look(&machine, places, &args.state_dir);
        failed.extend(unknown);
        done
    };
    let tuned = status(&machine, &StateDir::at(&args.state_dir));
    if let Err(error) = &tuned {
        failed.push(format!("what tune changed cannot be told: {error}"));
    }
    let sources = sources(&machine);
    if args.json {
        let value = json!({
            "schema_version": SCHEMA_VERSION,
            "verdict": verdict(&sources),
            "sources": sources,
            "leftovers": left,
            "removed": removed,
            "failed": failed,
            "tune": tuned.ok(),
        });
        output::json(&value)?;
    } else {
        let mut text = format!("{}\n", tune_words::wrapped("", &verdict(&sources)));
        text.push_str(&table(&sources));
        for what in &removed {
            writeln!(text, "removed: {}", visible(what))?;
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
        if let Ok(tuned) = &tuned {
            text.push_str(&changed_by_tune(tuned));
        }
        output::result(&text)?;
    }
    require::check(&sources, &args.require)?;
    Ok(if could_not_clean { Exit::Failed } else { Exit::Ok })
}

/// What `tune apply` changed and nothing has put back yet, a line for each apply and each value that somebody
/// else has changed since; empty when there is nothing.
fn changed_by_tune(tuned: &Status) -> String {
    let mut text = String::new();
    if !tuned.active {
        return text;
    }
    for apply in &tuned.applies {
        let (cpus, who) = (named(&apply.isolated), called(&apply.who));
        let cut = if apply.finished { "" } else { ", and was cut off" };
        let boot = if apply.before_reboot { ", before the last reboot" } else { "" };
        let _ = writeln!(text, "changed by tune: for {cpus}, by {}{boot}{cut}", visible(&who));
    }
    for change in &tuned.changes {
        let what = match &change.standing {
            NowIs::Drifted { reads } => format!("drifted: somebody made it {reads}"),
            NowIs::Forbidden { why } => format!("in the journal, but not tune's: {why}"),
            NowIs::InForce | NowIs::Pending { .. } if tuned.changes.len() <= MOST_CHANGES => {
                format!("{} instead of {}", change.asked, change.original)
            }
            _ => continue,
        };
        let _ = writeln!(text, "  {} {}: {}", visible(&change.knob), visible(&change.path), visible(&what));
    }
    let _ = writeln!(
        text,
        "  {} in all; jitterscope tune status shows them, tune rollback puts them back",
        counted(tuned.changes.len(), "change")
    );
    text
}

/// What all of it comes to, in a sentence or two.
fn verdict(sources: &[SourceReport]) -> String {
    let lacks = |name: &str| sources.iter().find(|s| s.name == name && s.status != SourceStatus::Available);
    let lacking: Vec<&str> =
        sources.iter().filter(|s| s.status != SourceStatus::Available).map(|s| s.name.as_str()).collect();
    let named = match lacks("tracefs") {
        Some(tracefs) => format!(
            "Stalls can be measured here, but not who causes them: {}. To have it: {}.",
            tracefs.reason, tracefs.fix
        ),
        None if lacking.is_empty() => {
            "Stalls can be measured here, and all that names their causes is there.".into()
        }
        None => format!(
            "Stalls can be measured here and their causes named; {} not all that there could be: {}.",
            if lacking.len() == 1 { "one source is" } else { "some sources are" },
            lacking.join(", ")
        ),
    };
    match lacks("tsc") {
        Some(tsc) => format!("{named} Short ones go unseen: {}.", tsc.reason),
        None => named,
    }
}

/// Sources as text: what is fine on one line each, what is not with what is lost and what to do.
pub fn table(sources: &[SourceReport]) -> String {
    let mut text = String::new();
    for source in sources {
        let status = format!("{:<10}", source.status.as_str());
        let status = match source.status {
            SourceStatus::Available => status.green().to_string(),
            SourceStatus::Degraded => status.yellow().to_string(),
            SourceStatus::Denied | SourceStatus::Absent | SourceStatus::Other(_) => status.red().to_string(),
        };
        let _ = writeln!(text, "{status} {:<12} {}", source.name.bold(), purpose(&source.name));
        for (what, value) in [("why", &source.reason), ("lost", &source.loses), ("fix", &source.fix)] {
            if !value.is_empty() {
                text.push_str(&wrapped(what, value));
            }
        }
    }
    text
}

/// What a source is for.
fn purpose(name: &str) -> &'static str {
    match name {
        "tsc" => "the clock that probes read",
        "tracefs" => "kernel events: who ran instead",
        "senders" => "who sent the IPI, woke the thread, queued the work",
        "trace-clock" => "events stamped on the probe's own clock",
        "symbols" => "names of kernel functions",
        "interrupts" => "/proc/interrupts: counts of interrupts",
        "softirqs" => "/proc/softirqs: counts of softirqs",
        "steal" => "/proc/stat: time that the hypervisor took",
        "schedstat" => "/proc/schedstat: run-queue delays",
        "smi" => "count of system management interrupts",
        _ => "",
    }
}

/// `text` behind a heading.
fn wrapped(heading: &str, text: &str) -> String {
    const INDENT: usize = 18;
    tune_words::wrapped(&format!("{:>width$} ", format!("{heading}:"), width = INDENT - 1), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_says_what_can_be_done_here_before_what_is_missing() {
        let source = |name: &str, status| SourceReport {
            name: name.into(),
            status,
            reason: "it is not mounted".into(),
            loses: String::new(),
            fix: "run as root".into(),
            lost: 0,
        };
        let (there, not) = (SourceStatus::Available, SourceStatus::Denied);
        let all = [source("tsc", there.clone()), source("tracefs", there.clone())];
        assert_eq!(verdict(&all), "Stalls can be measured here, and all that names their causes is there.");
        let blind = verdict(&[source("tsc", there.clone()), source("tracefs", not.clone())]);
        assert!(
            blind.contains("not who causes them: it is not mounted. To have it: run as root."),
            "{blind}"
        );
        let smi = verdict(&[source("tsc", there.clone()), source("tracefs", there), source("smi", not)]);
        assert!(smi.contains("causes named; one source is not all that there could be: smi."), "{smi}");
    }

    #[test]
    fn long_reasons_wrap_at_80_columns() {
        let text = wrapped("why", &"word ".repeat(60));
        assert!(text.lines().count() > 3 && text.lines().all(|line| line.len() <= 80), "{text}");
    }
}
