//! Periodic stalls.

use super::Page;
use crate::number::{count, percent_cell};
use crate::report::{Cell, Column, Link, Report, Row, Table};
use crate::style::{Style, Tone};
use crate::timeline::{Noun, StallKind};
use jitterscope_analyze::RunSummary;
use jitterscope_analyze::periods::{PeriodRow, PeriodSummary, Regularity};
use jitterscope_model::CpuSet;

/// The number of rows if the user did not ask for periods.
const FEW: usize = 6;
/// Periods of one culprit on several CPUs with a smaller relative difference are one.
const SAME: f64 = 0.002;
/// The heading, and its remark.
const HEADING: [&str; 2] = ["PERIODS", "stalls that come regularly"];

/// A culprit's period, on all CPUs that show it.
struct Merged<'r> {
    first: &'r PeriodRow,
    cpus: CpuSet,
    stalls: u64,
    in_pulse: u64,
    /// The smallest of them.
    hit: f64,
}

pub(crate) fn render(page: &mut Page, summary: &RunSummary) {
    let asked = page.style.periods;
    let [heading, remark] = HEADING;
    match &summary.periods {
        Some(periods) if asked || !periods.rows.is_empty() => {
            page.heading(heading, remark);
            let few = if asked { usize::MAX } else { FEW };
            let noun = StallKind::of_probe(&summary.probe.kind).noun();
            page.append(report(periods, noun, summary.probe.cpus.len() > 1, few));
        }
        None if asked => {
            page.heading(heading, "");
            page.prose(None, 2, not_looked_for(summary));
        }
        _ => {}
    }
}

/// Why a run has no periods.
pub(crate) fn not_looked_for(summary: &RunSummary) -> &'static str {
    if summary.wakeup.is_some() {
        return "Not looked for: wake-ups begin at deadlines, which are periodic themselves.";
    }
    if summary.pipeline.is_some() {
        return "Not looked for: messages are published at a rate, which is periodic itself. Measure the \
                pipeline's CPUs with `record spin` to see what comes regularly there.";
    }
    "Not looked for: threads that were followed are stalled only when they want to run, so a period need not \
     show. Measure their CPUs with `record spin` to see what comes regularly there."
}

/// Periods alone, each line within `style`'s width.
#[must_use]
pub fn periods_table(periods: &PeriodSummary, several_cpus: bool, style: Style) -> String {
    let mut page = Page::new(style);
    let [heading, remark] = HEADING;
    page.heading(heading, remark);
    page.append(report(
        periods,
        StallKind::Gap.noun(),
        several_cpus,
        usize::MAX,
    ));
    page.into_text()
}

/// The periods, of which short views show `few`.
pub(crate) fn report(periods: &PeriodSummary, noun: Noun, several: bool, few: usize) -> Report {
    let mut report = Report::default();
    let many = noun.many;
    if periods.rows.is_empty() {
        let text = match periods.searched {
            0 => format!("No culprit has ten {many}, which is the least to tell a period from."),
            n => format!("No significant period in {n} series of {many}, one a culprit and CPU."),
        };
        report.indented(None, 2, &text);
    } else {
        let mut columns = vec![
            Column::number("every"),
            Column::text("culprit"),
            Column::number("looked at"),
            Column::number("in step"),
            Column::number("hit"),
        ];
        columns.extend(several.then(|| Column::text("CPUs")));
        let merged = merged(&periods.rows);
        let rows = merged.iter().enumerate().map(|(at, of)| Row {
            aside: at >= few,
            ..row(of, many, several)
        });
        report.table(Table {
            title: format!("{} that come regularly", noun.heading),
            columns,
            rows: rows.collect(),
            remarks: "what is known",
            aside: "which report --periods shows",
        });
        let text = format!(
            "looked at: {many}, the first ones of each culprit. in step: of them, those in the same tenth of the \
             period. hit: periods that have one. Tested against {many} that come at random, singly or in \
             bursts: of {} such runs one would show any period.",
            count((1.0 / periods.false_alarm).round() as u64)
        );
        report.indented(Some(Tone::Dim), 2, &text);
    }
    if periods.left_out > 0 {
        let how = if few == usize::MAX {
            ""
        } else {
            " (report --periods)"
        };
        let text = format!(
            "{} series of those who stole less were not searched{how}.",
            count(periods.left_out as u64)
        );
        report.indented(Some(Tone::Dim), 2, &text);
    }
    report
}

fn same(a: &PeriodRow, b: &PeriodRow) -> bool {
    (a.period_ns.0 as f64 / b.period_ns.0.max(1) as f64 - 1.0).abs() < SAME
}

/// One row for each culprit and period, the most significant first, followed by all others of its period.
fn merged(rows: &[PeriodRow]) -> Vec<Merged<'_>> {
    let mut merged: Vec<Merged<'_>> = Vec::new();
    for row in rows {
        let known = |known: &&mut Merged<'_>| {
            (known.first.kind, &known.first.name) == (row.kind, &row.name) && same(known.first, row)
        };
        match merged.iter_mut().find(known) {
            Some(known) => {
                known.cpus.insert(row.cpu);
                known.stalls += row.stalls;
                known.in_pulse += row.in_pulse;
                known.hit = known.hit.min(row.hit_fraction);
            }
            None => {
                let last = merged.iter().rposition(|known| same(known.first, row));
                let at = last.map_or(merged.len(), |last| last + 1);
                merged.insert(
                    at,
                    Merged {
                        first: row,
                        cpus: [row.cpu].into_iter().collect(),
                        stalls: row.stalls,
                        in_pulse: row.in_pulse,
                        hit: row.hit_fraction,
                    },
                );
            }
        }
    }
    merged
}

fn row(of: &Merged<'_>, many: &str, several: bool) -> Row {
    let first = of.first;
    let culprit = match (&first.kind, &first.name) {
        (Some(kind), Some(name)) => {
            let name = format!("{kind} {name}");
            Cell::toned(name.clone(), Tone::Strong).with_link(Link::Named(name))
        }
        _ => format!("all {many}").into(),
    };
    let regularity = match first.regularity {
        Regularity::Clocked => "clocked",
        Regularity::Drifting => "drifting",
        Regularity::Undecided => "",
    };
    let mut cells = vec![
        first.period_ns.to_string().into(),
        Cell {
            detail: regularity.into(),
            ..culprit
        },
        count(of.stalls).into(),
        percent_cell(of.in_pulse as f64 / of.stalls.max(1) as f64).into(),
        percent_cell(of.hit).into(),
    ];
    cells.extend(several.then(|| of.cpus.to_string().into()));
    Row {
        remarks: first
            .known
            .map(|known| format!("the period of: {known}"))
            .into_iter()
            .collect(),
        ..Row::from(cells)
    }
}
