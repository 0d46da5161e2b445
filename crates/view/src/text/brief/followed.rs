//! Threads that were followed: how much of their time they waited, and for how long at worst.

use super::Ranking;
use crate::style::Tone;
use crate::text::Page;
use crate::text::threads::{head, headline, idle, lost, row};
use jitterscope_analyze::RunSummary;
use jitterscope_model::{Nanos, ThreadAccount};

/// With at most so many threads one by one.
pub(super) fn render<'a>(
    page: &mut Page,
    summary: &'a RunSummary,
    rows: usize,
) -> Option<Ranking<'a>> {
    headline(page, summary);
    super::longest(page, summary);
    if summary.threads.len() > 1 && rows > 0 {
        let mut threads: Vec<&ThreadAccount> = summary.threads.iter().collect();
        threads.sort_by_key(|thread| (std::cmp::Reverse(lost(thread)), thread.tid));
        table(page, &threads, rows);
    }
    unknown(page, summary);
    summary
        .attribution
        .as_ref()
        .and_then(|attribution| Ranking::of_culprits(summary, attribution))
}

/// Those that lost most; those that never wanted a CPU take one line together.
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

/// Time of which nothing is known.
fn unknown(page: &mut Page, summary: &RunSummary) {
    let threads = &summary.threads;
    let unknown: Nanos = threads.iter().map(|thread| thread.unknown_ns).sum();
    let all: Nanos = threads.iter().map(|thread| thread.followed_ns()).sum();
    if unknown.0 > all.0 / 100 {
        let text = format!("Of {unknown} of their time no record tells what they did.");
        page.prose(Some(Tone::Warning), 0, &text);
    }
}
