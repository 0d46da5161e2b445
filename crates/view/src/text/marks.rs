//! The application's marks, and the stalls in them.

use super::Page;
use crate::lines::counted;
use crate::number::{count, percent, percent_cell};
use crate::report::{Cell, Column, Link, Report, Row, Table};
use crate::style::{Tone, tame};
use crate::timeline::StallKind;
use crate::words;
use jitterscope_analyze::RunSummary;
use jitterscope_analyze::marks::{MarkCulprit, MarkLogSummary, MarksSummary};
use jitterscope_model::{MarkForm, Nanos, StallId};

/// The number of names that short views show.
const FEW: usize = 8;

pub(crate) const HEADING: &str = "Marks of the application";

pub(super) fn render(page: &mut Page, summary: &RunSummary) {
    if let Some(marks) = &summary.marks {
        page.heading(&HEADING.to_uppercase(), "");
        page.append(report(summary, marks));
    }
}

/// The logs, the marks by name, and the marks with the most stalled time.
#[must_use]
pub fn report(summary: &RunSummary, marks: &MarksSummary) -> Report {
    let noun = StallKind::of_probe(&summary.probe.kind).noun();
    let mut report = Report::default();
    for log in &marks.logs {
        report.indented(None, 2, &read(log));
    }
    if marks.crowded > 0 {
        let text = format!(
            "{} of the longest marks are left out: too many lie on one moment.",
            count(marks.crowded)
        );
        report.indented(None, 2, &text);
    }
    if marks.names.is_empty() {
        return report;
    }
    let rows = marks.names.iter().enumerate().map(|(at, of)| Row {
        aside: at >= FEW,
        remarks: mostly("most of it", &of.culprits).into_iter().collect(),
        ..Row::from([
            Cell::toned(tame(&of.name), Tone::Strong),
            count(of.count).into(),
            of.total_ns.to_string().into(),
            count(of.with_stalls).into(),
            of.stalled_ns.to_string().into(),
            of.expected_ns.to_string().into(),
            percent_cell(of.chance).into(),
        ])
    });
    let with = format!("with {}", noun.many);
    report.table(Table {
        title: "Marks, by the time that was stalled in them".into(),
        columns: [Column::text("mark")]
            .into_iter()
            .chain(Column::numbers([
                "marks",
                "length",
                &with,
                "stalled",
                "at random",
                "chance",
            ]))
            .collect(),
        rows: rows.collect(),
        remarks: "most of it",
        aside: "with less",
    });
    let text = format!(
        "stalled: time of {} inside the marks. at random: what marks of these lengths contain on average, wherever they \
         lie. chance: how often marks at other times contain as much.{}",
        noun.many,
        if marks.names.iter().any(|row| row.moments > 0) {
            " A mark without a length counts as the millisecond before it."
        } else {
            ""
        }
    );
    report.indented(Some(Tone::Dim), 2, &text);
    if !marks.worst.is_empty() {
        report.table(worst(marks));
    }
    report
}

fn worst(marks: &MarksSummary) -> Table {
    let rows = marks.worst.iter().map(|of| {
        let length = match of.length_ns {
            Nanos::ZERO => "-".to_owned(),
            length => length.to_string(),
        };
        Row {
            remarks: mostly("mostly", &of.culprits).into_iter().collect(),
            ..Row::from([
                Cell::toned(tame(&of.name), None).with_link(Link::Stall(StallId(of.stall))),
                format!("{:.3} s", of.offset_ns.as_secs_f64()).into(),
                length.into(),
                percent(of.explained).into(),
                of.stalled_ns.to_string().into(),
                of.stall.to_string().into(),
            ])
        }
    });
    Table {
        title: "The marks with the most stalled time".into(),
        columns: [Column::text("the worst")]
            .into_iter()
            .chain(Column::numbers([
                "at",
                "length",
                "explained",
                "stalled",
                "stall",
            ]))
            .collect(),
        rows: rows.collect(),
        remarks: "mostly",
        aside: "",
    }
}

/// What was read of a log: `gc.log (jvm): 12 marks; 3 outside of the run's time`.
fn read(log: &MarkLogSummary) -> String {
    let form = match log.form {
        MarkForm::Jvm => " (log of a JVM)",
        MarkForm::Csv => " (table)",
        MarkForm::Log | MarkForm::Unknown => "",
    };
    let mut text = format!(
        "{}{form}: {}",
        tame(&log.file),
        counted(log.marks as usize, "mark")
    );
    for (number, what) in [
        (log.outside, "outside of the run's time"),
        (log.unread, "lines without a readable time"),
        (log.beyond, "of the shortest are not kept"),
    ] {
        if number > 0 {
            text += &format!("; {} {what}", count(number));
        }
    }
    text + "."
}

/// The culprits with their times.
fn mostly(lead: &str, culprits: &[MarkCulprit]) -> Option<String> {
    let named: Vec<String> = culprits
        .iter()
        .map(|of| format!("{} {}", words::kind_and_name(&of.subject), of.total_ns))
        .collect();
    (!named.is_empty()).then(|| format!("{lead}: {}", named.join(", ")))
}
