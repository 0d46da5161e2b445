//! What made messages slow.

use crate::number::{count, percent, percent_cell};
use crate::style::{Tone, fit};
use crate::text::Page;
use crate::words;
use jitterscope_analyze::{Blame, BlameLevel, BlameRow, PipelineSummary};
use jitterscope_model::Nanos;

/// The number of rows for each consumer; JSON has all.
const ROWS: usize = 10;

/// One table for each consumer.
pub(super) fn render(page: &mut Page, pipeline: &PipelineSummary) {
    for consumer in &pipeline.consumers {
        if let Some(blame) = pipeline.held_up(consumer.role) {
            table(page, blame);
        }
    }
}

fn table(page: &mut Page, blame: &Blame) {
    let title = format!("WHO HELD UP THE {}", blame.role.as_str().to_uppercase());
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
    if blame.split < blame.above {
        let text = format!(
            "Shown for the {} of them that have a row ({}); the others came too fast to be stored.",
            count(blame.split),
            percent(blame.split as f64 / blame.above as f64)
        );
        page.prose(Some(Tone::Dim), 2, &text);
    }
    page.line(&page.style.paint(
        Tone::Dim,
        "   share   messages     mean      max  where: who",
    ));
    for one in blame.rows.iter().take(ROWS) {
        row(page, one);
    }
    if blame.rows.len() > ROWS {
        let rest: Nanos = blame.rows.iter().skip(ROWS).map(|row| row.total_ns).sum();
        let share = rest.0 as f64 / blame.total_ns.0.max(1) as f64;
        let text = format!(
            "{:>8}  {} more (--json lists them)",
            percent_cell(share),
            blame.rows.len() - ROWS
        );
        page.line(&page.style.paint(Tone::Dim, &text));
    }
}

fn row(page: &mut Page, row: &BlameRow) {
    let mean = Nanos(row.total_ns.0.checked_div(row.messages).unwrap_or(0));
    let numbers = format!(
        "{:>8} {:>10} {:>8} {:>8}  ",
        percent_cell(row.share),
        count(row.messages),
        mean.to_string(),
        row.max_ns.to_string()
    );
    let detail = words::detail(&row.subject, row.threads);
    let detail = if detail.is_empty() {
        detail
    } else {
        format!("  {detail}")
    };
    let text = format!(
        "{}{detail}",
        words::phase_and_name(Some(&row.phase), &row.subject)
    );
    let room = page.style.columns().saturating_sub(numbers.len());
    page.line(&format!("{numbers}{}", fit(&text, room)));
}
