//! `doctor`: what this machine lets us see.

use super::require;
use crate::exit::Exit;
use crate::output;
use crate::places::Places;
use crate::signals;
use anyhow::Context;
use clap::Args;
use jitterscope_model::{ClockKind, SCHEMA_VERSION, SourceReport, SourceStatus, visible};
use jitterscope_platform::{Machine, choose_clock, disturb};
use jitterscope_trace::{Tracefs, survey as survey_sources};
use owo_colors::OwoColorize;
use serde_json::json;
use std::fmt::Write;
use std::time::Duration;

/// Arguments of `doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// End with code 4 unless this source is available; may be repeated
    #[arg(long, value_name = "SOURCE")]
    pub require: Vec<String>,
    /// Remove what killed recordings left: tracing instances, unfinished runs, changed settings
    #[arg(long)]
    pub clean: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Every source of evidence, the clock first.
pub fn survey(machine: &Machine) -> Vec<SourceReport> {
    let (clock, kind) = clock_report(machine);
    let mut sources = vec![clock];
    sources.extend(survey_sources(machine, kind));
    sources
}

fn clock_report(machine: &Machine) -> (SourceReport, ClockKind) {
    let report = |status, reason: String, loses: &str, fix: &str| SourceReport {
        name: "tsc".into(),
        status,
        reason,
        loses: loses.into(),
        fix: fix.into(),
        lost: 0,
    };
    match choose_clock(machine, None, Duration::from_millis(20)) {
        Ok(choice) => match choice.fallback_reason {
            None => (report(SourceStatus::Available, String::new(), "", ""), ClockKind::Tsc),
            Some(reason) => (
                report(
                    SourceStatus::Absent,
                    reason,
                    "the lowest floor: CLOCK_MONOTONIC_RAW is read instead",
                    "boot with clocksource=tsc tsc=reliable where the hardware is sound",
                ),
                ClockKind::MonotonicRaw,
            ),
        },
        Err(error) => {
            (report(SourceStatus::Absent, error.to_string(), "any measurement", ""), ClockKind::MonotonicRaw)
        }
    }
}

/// Runs it.
///
/// # Errors
/// Leftovers cannot be removed, something required is missing, or stdout is closed.
pub fn run(args: &DoctorArgs, places: &Places) -> anyhow::Result<Exit> {
    // Looking mounts tracefs: Ctrl-C waits for the moment that it takes to unmount it again.
    let _stop = signals::stop_flag(places).context("signal handlers cannot be set")?;
    let machine = Machine::host();
    let mut removed = Vec::new();
    if args.clean {
        removed = clean(&machine, places)?;
    }
    let sources = survey(&machine);
    if args.json {
        let leftovers = if args.clean { Vec::new() } else { leftovers(&machine, places) };
        let value = json!({
            "schema_version": SCHEMA_VERSION,
            "sources": sources,
            "leftovers": leftovers,
            "removed": removed,
        });
        output::json(&value)?;
    } else {
        let mut text = table(&sources);
        for what in &removed {
            writeln!(text, "removed: {}", visible(what))?;
        }
        if args.clean && removed.is_empty() {
            writeln!(text, "nothing was left over")?;
        }
        let left = if args.clean { Vec::new() } else { leftovers(&machine, places) };
        for what in &left {
            writeln!(text, "left over: {}", visible(what))?;
        }
        if !left.is_empty() {
            writeln!(text, "Remove them with: jitterscope doctor --clean")?;
        }
        output::result(&text)?;
    }
    require::check(&sources, &args.require)?;
    Ok(Exit::Ok)
}

/// What killed recordings left, a phrase each.
fn leftovers(machine: &Machine, places: &Places) -> Vec<String> {
    let mut found = Vec::new();
    if let Ok(tracefs) = Tracefs::open(machine) {
        found.extend(tracefs.leftovers().iter().map(|l| format!("tracing instance {}", l.name)));
    }
    if let Ok(partials) = places.runs().and_then(|runs| Ok(jitterscope_store::partials(&runs)?)) {
        found.extend(partials.iter().map(|p| format!("unfinished run {}", p.path.display())));
    }
    found
}

/// Removes what killed recordings left; returns a phrase for each thing that was.
///
/// # Errors
/// Something of it cannot be removed.
pub fn clean(machine: &Machine, places: &Places) -> anyhow::Result<Vec<String>> {
    let mut removed = Vec::new();
    if let Ok(tracefs) = Tracefs::open(machine) {
        let (gone, kept) = tracefs.clean_leftovers();
        removed.extend(gone.iter().map(|l| format!("tracing instance {}", l.name)));
        for (leftover, error) in kept {
            output::talk(format_args!("tracing instance {} cannot be removed: {error}", leftover.name));
        }
    }
    let partials = jitterscope_store::clean_partials(&places.runs()?)?;
    removed.extend(partials.iter().map(|p| format!("unfinished run {}", p.path.display())));
    let restored = disturb::restore_leftovers(machine)?;
    removed.extend(restored.iter().map(setting));
    Ok(removed)
}

/// What a killed selftest had changed, in a phrase.
pub fn setting(leftover: &disturb::Leftover) -> String {
    let (file, original) = (leftover.file.display(), &leftover.original);
    if leftover.restored {
        format!("a killed selftest's change of {file}, back to '{original}'")
    } else {
        format!("the note that {file} was '{original}'; somebody has changed it since, so it was left")
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
            SourceStatus::Denied | SourceStatus::Absent => status.red().to_string(),
        };
        let _ = writeln!(text, "{status} {:<12} {}", source.name.bold(), purpose(&source.name));
        for (what, value) in [("why", &source.reason), ("lost", &source.loses), ("fix", &source.fix)] {
            if !value.is_empty() {
                let _ = writeln!(text, "{}", wrapped(what, value));
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
        "perf" => "perf events",
        "osnoise" => "the kernel's own noise tracers",
        _ => "",
    }
}

/// `text` behind a heading, wrapped at 80 columns.
fn wrapped(heading: &str, text: &str) -> String {
    const INDENT: usize = 18;
    let mut lines = vec![format!("{:>width$} ", format!("{heading}:"), width = INDENT - 1)];
    for word in visible(text).split_whitespace() {
        let line = lines.last().map_or(0, String::len);
        if line + word.len() > 79 && line > INDENT {
            lines.push(" ".repeat(INDENT));
        }
        if let Some(line) = lines.last_mut() {
            if line.len() > INDENT {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_reasons_wrap_at_80_columns() {
        let text = wrapped("why", &"word ".repeat(60));
        assert!(text.lines().count() > 3 && text.lines().all(|line| line.len() <= 80), "{text}");
    }
}
