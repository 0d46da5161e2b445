//! What made messages slow.

use crate::number::{count, percent, percent_cell};
use crate::report::{Cell, Column, Report, Row, Table};
use crate::style::Tone;
use crate::text::{Page, messages};
use crate::words;
use jitterscope_analyze::{Blame, BlameLevel, BlameRow, PipelineSummary};
use jitterscope_model::Nanos;

/// The number of rows for each consumer in short views.
const ROWS: usize = 10;

/// One table for each consumer.
pub(super) fn render(page: &mut Page, pipeline: &PipelineSummary) {
    for consumer in &pipeline.consumers {
        let Some(blame) = pipeline.held_up(consumer.role) else {
            continue;
        };
        let title = format!("WHO HELD UP THE {}", blame.role);
        let remark = match blame.level {
            BlameLevel::AboveP99 => {
                format!(
                    "{} messages above p99, {}",
                    count(blame.above),
                    blame.longer_than_ns
                )
            }
            BlameLevel::Slow => format!("{} slow messages", count(blame.above)),
        };
        page.heading(&title, &remark);
        page.append(held_up(blame));
    }
}

/// Those who held up the messages of a consumer.
pub(crate) fn held_up(blame: &Blame) -> Report {
    let mut report = Report::default();
    if blame.split < blame.above {
        let text = format!(
            "Shown for the {} of them that have a row ({}); the others came too fast to be stored.",
            count(blame.split),
            percent(blame.split as f64 / blame.above as f64)
        );
        report.indented(Some(Tone::Dim), 2, &text);
    }
    report.table(table(blame, ROWS));
    report
}

/// What the messages were made of; short views show `few` rows.
pub(crate) fn table(blame: &Blame, few: usize) -> Table {
    let (shown, rest) = blame.rows.split_at(few.min(blame.rows.len()));
    let total: Nanos = rest.iter().map(|row| row.total_ns).sum();
    let share = percent_cell(total.0 as f64 / blame.total_ns.0.max(1) as f64);
    let more = Row::rest(rest.len(), String::new(), [share, total.to_string()]);
    let aside = rest.iter().map(|of| Row {
        aside: true,
        ..row(of)
    });
    Table {
        title: format!("What {} were made of", messages(blame)),
        columns: vec![
            Column::text("where: who"),
            Column::number("share"),
            Column::number("total"),
            Column::number("messages"),
            Column::number("min").of_rank(1),
            Column::number("mean"),
            Column::number("max"),
        ],
        rows: shown.iter().map(row).chain(more).chain(aside).collect(),
        aside: "which took less",
        ..Table::default()
    }
}

fn row(row: &BlameRow) -> Row {
    let mean = Nanos(row.total_ns.0.checked_div(row.messages).unwrap_or(0));
    let who = Cell {
        detail: words::detail(&row.subject, row.threads),
        ..words::phase_and_name(Some(&row.phase), &row.subject).into()
    };
    Row {
        minor: true,
        ..Row::from([
            who,
            percent_cell(row.share).into(),
            row.total_ns.to_string().into(),
            count(row.messages).into(),
            row.min_ns.to_string().into(),
            mean.to_string().into(),
            row.max_ns.to_string().into(),
        ])
    }
}
