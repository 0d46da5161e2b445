//! The time of followed threads.

use super::markup::Markup;
use crate::chart::shares::{self, Whole};
use crate::report::Links;
use crate::style::Style;
use crate::text::Page;
use crate::text::threads::{by_loss, name, render as threads, share};
use jitterscope_analyze::RunSummary;
use jitterscope_model::{Nanos, ThreadAccount};

/// The number of threads in the chart.
const DRAWN: usize = 16;

pub(super) fn render(body: &mut Markup, summary: &RunSummary) {
    if summary.threads.is_empty() {
        return;
    }
    body.section("threads", "Threads");
    let all = by_loss(summary);
    picture(body, &all[..all.len().min(DRAWN)]);
    let mut page = Page::new(Style::default());
    threads(&mut page, "By time lost", summary);
    page.into_report().html(body, &Links::default());
    body.end();
}

/// A component of a thread's time.
type Sort = (&'static str, fn(&ThreadAccount) -> Nanos);

/// Interruptions lie within the running time.
const SORTS: [Sort; 6] = [
    ("running", |thread| {
        thread.running_ns.saturating_sub(thread.interrupted_ns)
    }),
    ("interrupted", |thread| thread.interrupted_ns),
    ("waiting", |thread| thread.waiting_ns),
    ("blocked", |thread| thread.blocked_ns),
    ("unknown", |thread| thread.unknown_ns),
    ("stopped", |thread| thread.stopped_ns),
];

fn picture(body: &mut Markup, threads: &[&ThreadAccount]) {
    let whole = |thread: &&ThreadAccount| Whole {
        name: format!("{} {}", name(thread), thread.tid),
        shares: SORTS
            .iter()
            .map(|(_, of)| share(of(thread), thread))
            .collect(),
    };
    let drawn = shares::inline(
        "What became of each thread's time",
        "shares of the time that it was followed, those that lost most first",
        &SORTS.map(|(name, _)| name),
        &threads.iter().map(whole).collect::<Vec<_>>(),
    );
    body.chart(None, &drawn);
}
