//! The culprits by total, then the unexplained time.

use super::Page;
use crate::number::{count, percent, percent_cell, rate};
use crate::report::{Cell, Column, Link, Report, Row, Table};
use crate::style::{Tone, tame};
use crate::timeline::StallKind;
use crate::words;
use jitterscope_analyze::{AttributionSummary, CulpritRow, RunSummary, SenderRow};
use jitterscope_model::{ExecutionContext, Nanos, PutInOrder};
use std::cmp::Reverse;

/// The number of culprits, and of unexplained classes, in short views.
const SHOWN: usize = 12;
/// The number of rows that any view lists: a run from anywhere may name a culprit for each of its stalls.
const LISTED: usize = 1000;
/// Rows below this share have no explanation on a terminal.
const EXPLAINED_FROM: f64 = 0.001;

pub(super) fn render(page: &mut Page, summary: &RunSummary, attribution: &AttributionSummary) {
    // Without proof no culprit is named.
    if attribution.stalls == 0 || !attribution.proven {
        return;
    }
    let remark = format!("{} explained", percent(attribution.explained_fraction));
    let title = match summary.wakeup {
        Some(_) => "WHO MADE IT LATE",
        None => "WHO STOLE IT",
    };
    page.heading(title, &remark);
    page.append(report(summary, attribution));
}

/// The culprits, then the unexplained time, and what is known of that.
pub(crate) fn report(summary: &RunSummary, attribution: &AttributionSummary) -> Report {
    let unexplained = &attribution.unexplained;
    let mut all = rows(&attribution.culprits);
    let mut classes = rows(&unexplained.classes);
    if let Some(first) = classes.first_mut() {
        let share = percent(unexplained.share);
        let text = format!("not explained by kernel activity: {share}");
        first.group = Some(Cell::toned(text, Tone::Warning));
    }
    all.append(&mut classes);
    let mut report = Report::default();
    report.rows(table(summary, all));
    if let Some(text) = words::possibilities(summary).filter(|_| !unexplained.classes.is_empty()) {
        report.indented(None, 2, &text);
    }
    report.append(super::owners::report(summary, attribution));
    report
}

/// The `few` largest of all, explained or not, in one ranking.
pub(crate) fn ranking(summary: &RunSummary, attribution: &AttributionSummary, few: usize) -> Table {
    let classes = &attribution.unexplained.classes;
    let all = by_time(attribution.culprits.iter().chain(classes));
    table(summary, largest(&all, few))
}

fn table(summary: &RunSummary, rows: Vec<Row>) -> Table {
    let noun = StallKind::of_probe(&summary.probe.kind).noun();
    Table {
        title: "Culprits, by their time".into(),
        columns: vec![
            Column::text("culprit"),
            Column::number("share"),
            Column::number("total"),
            Column::number(noun.many),
            Column::number("a second").of_pages(),
            Column::number("min").of_rank(1),
            Column::number("mean"),
            Column::number("max"),
        ],
        rows,
        remarks: "what it is",
        aside: "which took less",
    }
}

/// Those who took any time, those with most of it first.
fn by_time<'r>(rows: impl IntoIterator<Item = &'r CulpritRow>) -> Vec<&'r CulpritRow> {
    let mut all: Vec<&CulpritRow> = rows.into_iter().collect();
    all.retain(|row| row.total_ns > Nanos::ZERO);
    all.order_by_key(|row| Reverse(row.total_ns));
    all
}

/// The rows of the `few` largest, and one that sums up the others.
fn largest(all: &[&CulpritRow], few: usize) -> Vec<Row> {
    let (shown, rest) = all.split_at(few.min(all.len()));
    let shown_rows = shown.iter().map(|of| row(of));
    shown_rows.chain(others(shown, rest)).collect()
}

/// The rows of all, of which short views show the largest. Beyond [`LISTED`] they are only summed up.
fn rows(culprits: &[CulpritRow]) -> Vec<Row> {
    let all = by_time(culprits);
    let (listed, rest) = all.split_at(LISTED.min(all.len()));
    let aside = listed.iter().skip(SHOWN).map(|of| row(of));
    // Views that list the rows left aside also list this sum.
    let aside = aside.chain(others(listed, rest)).map(|row| Row {
        aside: true,
        is_rest: false,
        ..row
    });
    largest(&all, SHOWN).into_iter().chain(aside).collect()
}

fn row(of: &CulpritRow) -> Row {
    let minor = of.share < EXPLAINED_FROM;
    // The detail beside an explanation does not repeat it.
    let detail = match minor {
        true => words::row_detail(of),
        false => words::row_further_detail(of),
    };
    let tone = match of.subject.kind().is_explained() {
        true => Tone::Strong,
        false => Tone::Warning,
    };
    let name = Cell {
        detail,
        ..Cell::toned(words::kind_and_name(&of.subject), tone)
            .with_link(Link::Culprit(of.subject.clone().into()))
    };
    let sender = of.sender.as_ref().map(|sender| sender_text(of, sender));
    Row {
        minor,
        remarks: [words::row_explanation(of)]
            .into_iter()
            .chain(sender)
            .collect(),
        ..Row::from([
            name,
            percent_cell(of.share).into(),
            of.total_ns.to_string().into(),
            count(of.count).into(),
            rate(of.per_sec).into(),
            of.min_ns.to_string().into(),
            of.mean_ns.to_string().into(),
            of.max_ns.to_string().into(),
        ])
    }
}

/// The sum of those left aside.
fn others(shown: &[&CulpritRow], rest: &[&CulpritRow]) -> Option<Row> {
    let total: Nanos = rest.iter().map(|row| row.total_ns).sum();
    // Many names together may hide a culprit that would rank higher.
    let least = shown.last().map_or(Nanos::ZERO, |row| row.total_ns);
    let common = words::in_common(rest.iter().map(|row| (&row.subject, row.total_ns)));
    let common = common.filter(|(_, time)| rest.len() > 1 && *time > least);
    let detail = common.map_or_else(String::new, |(text, _)| text);
    let share = percent_cell(rest.iter().map(|row| row.share).sum());
    Row::rest(rest.len(), detail, [share, total.to_string()])
}

/// `woken by cron (pid 12, CPU 0), 12 of 40 times`; if not all triggers are known, `in all 12 known cases of 40`.
fn sender_text(row: &CulpritRow, sender: &SenderRow) -> String {
    let verb = words::sender_verb(row.subject.kind());
    let mut where_from = Vec::new();
    // The thread beneath a softirq is only named: it is not the trigger.
    let tid = sender
        .tid
        .filter(|_| sender.context == ExecutionContext::Thread);
    where_from.extend(tid.map(|tid| format!("pid {tid}")));
    where_from.extend(sender.cpu.map(|cpu| format!("CPU {cpu}")));
    let gone = || sender.tid.map(|_| words::ENDED.to_owned());
    let named = sender.comm.as_ref().or(sender.beneath.as_ref());
    let thread = named.map(|comm| tame(comm)).or_else(gone);
    let mut text = format!(
        "{verb} by {}",
        words::sent_from(sender.context, thread.as_deref())
    );
    if !where_from.is_empty() {
        text += &format!(" ({})", where_from.join(", "));
    }
    if let Some(via) = &sender.via {
        text += &format!(" through {}", tame(via));
    }
    // A stall may have several parts of a culprit, each with its own sender.
    let known = row.senders_known.max(sender.count);
    let all = row.count.max(known);
    text += &match (sender.count == known, known == all) {
        (true, true) => String::new(),
        (false, true) => format!(", {} of {} times", count(sender.count), count(all)),
        (true, false) if known == 1 => format!(", in the one known case of {}", count(all)),
        (true, false) => format!(", in all {} known cases of {}", count(known), count(all)),
        (false, false) => {
            format!(
                ", in {} of {} known cases of {}",
                count(sender.count),
                count(known),
                count(all)
            )
        }
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{CpuId, Subject, Task};

    fn row(subject: Subject) -> CulpritRow {
        CulpritRow {
            subject,
            threads: 1,
            thread_names: Vec::new(),
            recorder: None,
            told_apart: None,
            explanation: String::new(),
            sender: None,
            senders_known: 0,
            count: 12,
            per_sec: 1.2,
            total_ns: Nanos(12),
            share: 0.5,
            min_ns: Nanos(1),
            mean_ns: Nanos(1),
            max_ns: Nanos(1),
        }
    }

    #[test]
    fn beyond_a_thousand_culprits_are_summed_up() {
        let all: Vec<CulpritRow> = (0..1_500)
            .map(|n| row(Subject::Ipi(n.to_string().into())))
            .collect();
        let rows = rows(&all);
        let named: Vec<(&str, bool, bool)> = rows
            .iter()
            .map(|row| (row.cells[0].text.as_str(), row.aside, row.is_rest))
            .filter(|(text, ..)| text.ends_with(" more"))
            .collect();
        assert_eq!(
            named,
            [("1488 more", false, true), ("500 more", true, false)]
        );
        assert_eq!(rows.len(), LISTED + 2);
    }

    #[test]
    fn a_thread_has_a_name_and_an_interrupt_has_none() {
        let told_of = |context, comm: Option<&str>, tid, times, known| {
            let name = comm.map(Into::into);
            let [comm, beneath] = match context {
                ExecutionContext::Softirq => [None, name],
                _ => [name, None],
            };
            let sender = SenderRow {
                context,
                comm,
                tid,
                cpu: Some(CpuId(0)),
                via: None,
                beneath,
                count: times,
            };
            let thread = Subject::Thread(Task {
                comm: "evil".into(),
                ..Task::default()
            });
            let row = CulpritRow {
                senders_known: known,
                ..row(thread)
            };
            sender_text(&row, &sender)
        };
        let text_of = |context, comm, tid, times| told_of(context, comm, tid, times, 12);
        let (thread, interrupt) = (ExecutionContext::Thread, ExecutionContext::Interrupt);
        let softirq = ExecutionContext::Softirq;
        assert_eq!(
            text_of(softirq, Some("udp-send"), None, 12),
            "woken by a softirq on top of udp-send (CPU 0)"
        );
        assert_eq!(
            text_of(softirq, None, None, 12),
            "woken by a softirq (CPU 0)"
        );
        assert_eq!(
            text_of(thread, Some("cron"), Some(12), 12),
            "woken by cron (pid 12, CPU 0)"
        );
        assert_eq!(
            text_of(thread, None, Some(12), 12),
            "woken by a thread that has ended (pid 12, CPU 0)"
        );
        assert_eq!(
            text_of(interrupt, None, None, 3),
            "woken by an interrupt (CPU 0), 3 of 12 times"
        );
        // Nothing is said about unknown triggers: they may have been the same.
        let cron = |times, known| told_of(thread, Some("cron"), Some(12), times, known);
        assert_eq!(
            cron(3, 3),
            "woken by cron (pid 12, CPU 0), in all 3 known cases of 12"
        );
        assert_eq!(
            cron(1, 1),
            "woken by cron (pid 12, CPU 0), in the one known case of 12"
        );
        assert_eq!(
            cron(3, 4),
            "woken by cron (pid 12, CPU 0), in 3 of 4 known cases of 12"
        );
    }
}
