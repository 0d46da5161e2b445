//! Followed threads: how much of their time they waited, and the longest wait.

use super::Ranking;
use crate::style::Tone;
use crate::text::Page;
use crate::text::threads::{by_loss, head, headline, idle, row};
use jitterscope_analyze::RunSummary;
use jitterscope_model::{Nanos, ThreadAccount};

/// `rows`: the largest number of individual threads.
pub(super) fn render<'a>(
    page: &mut Page,
    summary: &'a RunSummary,
    rows: usize,
) -> Option<Ranking<'a>> {
    headline(page, summary);
    super::longest(page, summary);
    if summary.threads.len() > 1 && rows > 0 {
        table(page, &by_loss(summary), rows);
    }
    unknown(page, summary);
    summary
        .attribution
        .as_ref()
        .and_then(|attribution| Ranking::of_culprits(summary, attribution))
}

/// The threads that lost most; threads that never wanted a CPU share one line.
fn table(page: &mut Page, threads: &[&ThreadAccount], rows: usize) {
    page.line("");
    page.line(&head(page.style));
    let busy: Vec<&ThreadAccount> = threads
        .iter()
        .filter(|thread| !idle(thread))
        .copied()
        .collect();
    for thread in busy.iter().take(rows) {
        row(page, thread);
    }
    let more = busy.len().saturating_sub(rows);
    let idle = threads.len() - busy.len();
    let mut rest = Vec::new();
    rest.extend((more > 0).then(|| format!("{more} more, which lost less")));
    rest.extend((idle > 0).then(|| format!("{idle} that never ran")));
    if !rest.is_empty() {
        page.prose(Some(Tone::Dim), 2, &rest.join("; "));
    }
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
