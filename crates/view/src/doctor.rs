//! What can be observed on a machine, and what `tune` changed on it.

use crate::lines::{counted, cpus_text};
use crate::report::{Cell, Column, Report, Row, Table};
use crate::sources::source_words;
use crate::style::Tone;
use crate::tuning::forbidden;
use jitterscope_analyze::SourceWords;
use jitterscope_model::{SourceLoss, SourceReport, SourceStatus, visible};
use jitterscope_tune::{NowIs, Status, called};
use std::fmt::Write;

/// Beyond this number, changes are counted instead of listed: moving threads makes hundreds.
const MOST_CHANGES: usize = 12;

/// The changes of `tune apply` that are still in place, one line for each apply and for each value that was changed
/// again since by another program; empty if there are none.
#[must_use]
pub fn changed_by_tune(tuned: &Status) -> String {
    let mut text = String::new();
    if !tuned.active {
        return text;
    }
    for apply in &tuned.applies {
        let (cpus, who) = (cpus_text(&apply.isolated), called(&apply.who));
        let cut = if apply.finished {
            ""
        } else {
            ", and was cut off"
        };
        let boot = if apply.before_reboot {
            ", before the last reboot"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "changed by tune: for {cpus}, by {}{boot}{cut}",
            visible(&who)
        );
    }
    for change in &tuned.changes {
        let what = match &change.standing {
            NowIs::Drifted { reads } => format!("drifted: another program changed it to {reads}"),
            NowIs::Forbidden { cause } => {
                format!("in the journal, but not tune's: {}", forbidden(cause))
            }
            NowIs::InForce | NowIs::Pending { .. } if tuned.changes.len() <= MOST_CHANGES => {
                format!("{} instead of {}", change.asked, change.original)
            }
            _ => continue,
        };
        let _ = writeln!(
            text,
            "  {} {}: {}",
            visible(&change.knob),
            visible(&change.path),
            visible(&what)
        );
    }
    let _ = writeln!(
        text,
        "  {} in all; jitterscope tune status shows them, tune rollback puts them back",
        counted(tuned.changes.len(), "change")
    );
    text
}

fn words(source: &SourceReport) -> SourceWords {
    source_words(&source.problems, &source.losses)
}

/// The overall result, in a sentence or two.
#[must_use]
pub fn verdict(sources: &[SourceReport]) -> String {
    let lacks = |name: &str| {
        sources
            .iter()
            .find(|s| s.name == name && s.status != SourceStatus::Available)
    };
    let lacking: Vec<&str> = sources
        .iter()
        .filter(|s| s.status != SourceStatus::Available)
        .map(|s| s.name.as_str())
        .collect();
    // An older kernel lacks some events, but names everything that the others show.
    let named = match lacks("tracefs").filter(|tracefs| tracefs.status != SourceStatus::Degraded) {
        Some(tracefs) => {
            let SourceWords { reason, fix, .. } = words(tracefs);
            let advice = match fix.is_empty() {
                true => String::new(),
                false => format!(" Fix: {fix}."),
            };
            format!(
                "Stalls can be measured here, but their causes cannot be named: {reason}.{advice}"
            )
        }
        None if lacking.is_empty() => {
            "Stalls can be measured here, and all sources that name their causes are available."
                .into()
        }
        None => format!(
            "Stalls can be measured here and their causes named; {} not all that there could be: {}.",
            if lacking.len() == 1 {
                "one source is"
            } else {
                "some sources are"
            },
            lacking.join(", ")
        ),
    };
    match lacks("tsc") {
        Some(tsc) => format!("{named} Short ones go unseen: {}.", words(tsc).reason),
        None => named,
    }
}

/// The verdict, then the sources: an available one in a line, an unavailable one with the loss and the fix.
#[must_use]
pub fn render(sources: &[SourceReport]) -> Report {
    let mut rows: Vec<Row> = Vec::new();
    for alike in alike(sources) {
        rows.extend(alike.iter().map(|source| row(source)));
        // Sources with the same loss and reason are reported once.
        let (Some(first), Some(last)) = (alike.first(), rows.last_mut()) else {
            continue;
        };
        let mut losses: Vec<SourceLoss> = Vec::new();
        for loss in alike.iter().flat_map(|source| &source.losses) {
            if !losses.contains(loss) {
                losses.push(loss.clone());
            }
        }
        let SourceWords { reason, loses, fix } = source_words(&first.problems, &losses);
        for (what, value) in [("why", reason), ("lost", loses), ("fix", fix)] {
            if !value.is_empty() {
                last.remarks.push(format!("{what}: {value}"));
            }
        }
    }
    let mut report = Report::default();
    report.sentence(None, verdict(sources));
    report.table(Table {
        title: "Sources".into(),
        columns: ["source", "status", "what it is"].map(Column::text).into(),
        rows,
        ..Table::default()
    });
    report
}

/// Groups sources with the same loss and reason, in order of the first of them.
fn alike(sources: &[SourceReport]) -> Vec<Vec<&SourceReport>> {
    let mut groups: Vec<Vec<&SourceReport>> = Vec::new();
    for source in sources {
        let same = |group: &&mut Vec<&SourceReport>| {
            let known = group.first().map(|known| &known.problems);
            !source.problems.is_empty() && known == Some(&source.problems)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(source),
            None => groups.push(vec![source]),
        }
    }
    groups
}

fn row(source: &SourceReport) -> Row {
    let tone = match source.status {
        SourceStatus::Available => Tone::Good,
        SourceStatus::Degraded => Tone::Warning,
        SourceStatus::Denied | SourceStatus::Absent | SourceStatus::Other(_) => Tone::Bad,
    };
    Row::from([
        Cell::toned(source.name.as_str(), Tone::Strong),
        Cell::toned(source.status.as_str(), tone),
        purpose(&source.name).into(),
    ])
}

/// The purpose of a source.
fn purpose(name: &str) -> &'static str {
    match name {
        "tsc" => "the clock that probes read",
        "tracefs" => "kernel events: who ran instead",
        "senders" => "who sent the IPI, woke the thread, queued the work",
        "trace-clock" => "events stamped on the probe's own clock",
        "symbols" => "names of kernel functions",
        "stacks" => "what sleeping threads wait for (attach)",
        "interrupts" => "/proc/interrupts: counts of interrupts",
        "softirqs" => "/proc/softirqs: counts of softirqs",
        "steal" => "/proc/stat: time that the hypervisor took",
        "schedstat" => "/proc/schedstat: run-queue delays",
        "smi" => "count of system management interrupts",
        "function_graph" => "what happens inside kernel functions",
        "osnoise" => "the kernel's own measure of noise",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;
    use jitterscope_model::SourceProblem;

    #[test]
    fn the_verdict_says_what_can_be_done_here_before_what_is_missing() {
        let source = |name: &str, status| SourceReport {
            problems: vec![SourceProblem::EventsLost { lost: 3 }],
            ..SourceReport::of_status(name, status)
        };
        let (there, not) = (SourceStatus::Available, SourceStatus::Denied);
        let all = [
            source("tsc", there.clone()),
            source("tracefs", there.clone()),
        ];
        assert_eq!(
            verdict(&all),
            "Stalls can be measured here, and all sources that name their causes are available."
        );
        let blind = verdict(&[source("tsc", there.clone()), source("tracefs", not.clone())]);
        assert!(
            blind.contains("their causes cannot be named: the ring buffer lost 3 events. Fix: make the trace buffer larger."),
            "{blind}"
        );
        let nothing = SourceReport {
            problems: vec![SourceProblem::FormatUnreadable {
                parser: "it is broken".into(),
            }],
            ..SourceReport::of_status("tracefs", SourceStatus::Absent)
        };
        assert!(verdict(&[nothing]).ends_with("their causes cannot be named: it is broken."),);
        let smi = verdict(&[
            source("tsc", there.clone()),
            source("tracefs", there),
            source("smi", not),
        ]);
        assert!(
            smi.contains("causes named; one source is not all that there could be: smi."),
            "{smi}"
        );
        let older = verdict(&[source("tracefs", SourceStatus::Degraded)]);
        assert!(
            older.contains("causes named; one source is not all that there could be: tracefs."),
            "{older}"
        );
    }

    #[test]
    fn what_several_lack_for_one_reason_is_reported_once() {
        let source = |name: &str, path: &str, loses: &str| {
            let loss = SourceLoss::Other(loses.into());
            let problem = SourceProblem::CountersMissing { path: path.into() };
            SourceReport::limited(name, SourceStatus::Denied, problem, loss)
        };
        let all = [
            source("tracefs", "/one", "who"),
            source("symbols", "/other", "names"),
            source("senders", "/one", "who sent"),
        ];
        let text = render(&all).terminal(Style::default());
        let why = "  why: /one does not exist\n";
        assert_eq!(text.matches(why).count(), 1, "{text}");
        assert!(text.contains("lost: who; who sent\n"), "{text}");
        assert_eq!(
            text.matches("fix: mount procfs: `mount -t proc proc /proc`")
                .count(),
            2,
            "{text}"
        );
        assert!(
            text.contains("\ntracefs  denied  ") && text.contains("\nsenders  denied  "),
            "{text}"
        );
    }

    #[test]
    fn long_reasons_wrap_at_80_columns() {
        let source = SourceReport {
            problems: vec![SourceProblem::FormatUnreadable {
                parser: "word ".repeat(60),
            }],
            ..SourceReport::of_status("smi", SourceStatus::Absent)
        };
        let text = render(&[source]).terminal(Style::default());
        assert!(
            text.lines().count() > 5 && text.lines().all(|line| line.len() <= 80),
            "{text}"
        );
    }
}
