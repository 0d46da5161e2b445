//! The list of runs.

use crate::number;
use crate::style::{Style, Tone, fit, pad};
use crate::words;
use jitterscope_analyze::{Redactor, RunLine};
use jitterscope_model::SCHEMA_VERSION;
use jitterscope_store::{Problem, RunEntry, StoreError};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The list without labels, host and folder names. Unreadable runs are still counted.
#[must_use]
pub fn redacted(runs: &[RunEntry], problems: &[Problem]) -> (Vec<RunEntry>, Vec<Problem>) {
    let mut redactor = Redactor::new();
    let runs = runs
        .iter()
        .map(|run| RunEntry {
            path: PathBuf::new(),
            head: redactor.head(&run.head),
            ..run.clone()
        })
        .collect();
    let left_out = |_| {
        let why = "why is left out".to_owned();
        Problem {
            path: PathBuf::new(),
            error: StoreError::Damaged {
                path: PathBuf::from("a run"),
                why,
            },
        }
    };
    (runs, problems.iter().map(left_out).collect())
}

/// The list as text, oldest first, with the unreadable runs at its end.
#[must_use]
pub fn render(runs: &[RunEntry], problems: &[Problem], style: Style) -> String {
    let mut out = String::new();
    if runs.is_empty() {
        out.push_str("No runs yet. Record one with: jitterscope record\n");
    } else {
        let label_width = style.columns() - 69;
        let head = format!(
            "{:<6}  {:<16}  {:<8}  {}  {:<6} {:>8} {:>7} {:>7}",
            "id",
            "started (UTC)",
            "probe",
            pad("label", label_width),
            "cpus",
            "length",
            "stolen",
            "worst"
        );
        out.push_str(&style.paint(Tone::Heading, &head));
        out.push('\n');
        let mut unstolen = false;
        for run in runs {
            let line = RunLine::new(&run.head);
            let worst = line.max_ns.map_or_else(|| "-".into(), |ns| ns.to_string());
            unstolen |= line.stolen_fraction.is_none();
            // Minutes suffice here: the id identifies a run, and --json has nanoseconds.
            let started = number::utc(line.started_realtime_ns);
            out.push_str(&format!(
                "{}  {}  {}  {}  {} {:>8} {:>7} {:>7}\n",
                pad(&line.id, 6),
                started.get(..16).unwrap_or(&started),
                pad(&words::probe(&line.probe), 8),
                pad(&run.head.label, label_width),
                pad(
                    &if line.cpus.is_empty() {
                        "-".into()
                    } else {
                        line.cpus.to_string()
                    },
                    6
                ),
                number::span(line.duration_ns) + mark(&line),
                line.stolen_fraction
                    .map_or_else(|| "-".into(), number::percent),
                worst,
            ));
        }
        if unstolen {
            let text = "stolen: only a spinning probe can tell, or a CPU that was watched as far as its records do. \
                        worst: the longest stall, latest wake-up, slowest message, or longest wait of a \
                        followed thread.";
            for line in style.prose(Some(Tone::Dim), 0, text) {
                out.push_str(&line);
                out.push('\n');
            }
        }
        let remarks = [
            (
                runs.iter().any(|run| run.head.interrupted),
                "* ended before its time",
            ),
            (
                runs.iter().any(|run| run.head.killed),
                "! killed: the run has what was written until then",
            ),
        ];
        for (_, remark) in remarks.iter().filter(|(has, _)| *has) {
            out.push_str(&style.paint(Tone::Dim, remark));
            out.push('\n');
        }
    }
    let mut foreign: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for run in runs.iter().filter(|run| !run.is_own()) {
        if let Some(owner) = owner(run) {
            foreign.entry(owner).or_default().push(&run.head.id);
        }
    }
    for (owner, ids) in foreign {
        let text = format!("of another user (user {owner}): {}", ids.join(", "));
        for line in style.prose(Some(Tone::Dim), 0, &text) {
            out.push_str(&line);
            out.push('\n');
        }
    }
    for problem in problems {
        let text = fit(
            &format!("unreadable: {}", problem.error),
            style.columns().max(400),
        );
        out.push_str(&style.paint(Tone::Warning, &text));
        out.push('\n');
    }
    out
}

/// The label of a run, with its owner if that is another user.
#[must_use]
pub fn label(run: &RunEntry) -> String {
    match owner(run) {
        Some(owner) if !run.is_own() => format!("{} (user {owner})", run.head.label),
        _ => run.head.label.clone(),
    }
}

/// The owner of a run; `None` in a redacted list.
fn owner(run: &RunEntry) -> Option<u32> {
    (!run.path.as_os_str().is_empty()).then_some(run.owner)
}

/// The runs that there are.
#[derive(Serialize, JsonSchema)]
pub struct List<'a> {
    /// Version of this structure.
    schema_version: u32,
    /// Oldest first.
    runs: Vec<ListedRun<'a>>,
    /// Folders that are no readable runs.
    problems: Vec<UnreadableRun>,
}

#[derive(Serialize, JsonSchema)]
struct ListedRun<'a> {
    #[serde(flatten)]
    line: RunLine,
    /// Its folder; empty if redacted.
    path: Cow<'a, str>,
    /// The user id of the owner; absent if redacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
struct UnreadableRun {
    /// Its folder; empty if redacted.
    path: String,
    error: String,
}

/// The list for programs.
#[must_use]
pub fn json<'a>(runs: &'a [RunEntry], problems: &[Problem]) -> List<'a> {
    List {
        schema_version: SCHEMA_VERSION,
        runs: runs
            .iter()
            .map(|run| ListedRun {
                line: RunLine::new(&run.head),
                path: run.path.to_string_lossy(),
                owner: owner(run),
            })
            .collect(),
        problems: problems
            .iter()
            .map(|p| UnreadableRun {
                path: p.path.display().to_string(),
                error: p.error.to_string(),
            })
            .collect(),
    }
}
/// The mark behind the length of a run that ended early.
fn mark(line: &RunLine) -> &'static str {
    match (line.killed, line.interrupted) {
        (true, _) => "!",
        (false, true) => "*",
        (false, false) => "",
    }
}
