//! Followed threads: how much of their time they waited, and the longest wait.

use super::Ranking;
use crate::style::Tone;
use crate::text::Page;
use crate::text::threads::{by_loss, headline, table};
use jitterscope_analyze::RunSummary;
use jitterscope_model::Nanos;

/// `rows`: the largest number of individual threads.
pub(super) fn render<'a>(
    page: &mut Page,
    summary: &'a RunSummary,
    rows: usize,
) -> Option<Ranking<'a>> {
    headline(page, summary);
    super::longest(page, summary);
    if summary.threads.len() > 1 && rows > 0 {
        page.table(table(&by_loss(summary), rows));
    }
    unknown(page, summary);
    summary
        .attribution
        .as_ref()
        .map(|attribution| Ranking::Culprits(summary, attribution))
}

/// Time in an unknown state.
fn unknown(page: &mut Page, summary: &RunSummary) {
    let threads = &summary.threads;
    let unknown: Nanos = threads.iter().map(|thread| thread.unknown_ns).sum();
    let all: Nanos = threads.iter().map(|thread| thread.followed_ns()).sum();
    if unknown.0 > all.0 / 100 {
        let text = format!("Of {unknown} of their time no record tells what they did.");
        page.prose(Some(Tone::Warning), 0, &text);
    }
}
