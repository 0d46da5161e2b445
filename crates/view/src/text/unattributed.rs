//! Why there are no culprits, and what is known instead.

use super::Page;
use crate::number::count;
use crate::sources::source_words;
use crate::style::{Tone, fit, pad};
use jitterscope_analyze::{RunSummary, SourceWords};
use jitterscope_model::SourceStatus;

/// Counters shown.
const SHOWN: usize = 10;

pub(super) fn render(page: &mut Page, summary: &RunSummary) {
    let (title, what) = match summary.wakeup {
        Some(_) => ("WHO MADE IT LATE", "Lateness was measured"),
        None => ("WHO STOLE IT", "Stalls were measured"),
    };
    page.heading(title, "not known");
    let text = format!("{what}, but no kernel events were recorded to name culprits.");
    page.prose(None, 2, &text);
    sources(page, summary, 2);
    counters(page, summary);
}

/// Why nobody is named, for a report on one screen.
pub(super) fn reason(page: &mut Page, summary: &RunSummary) {
    if summary.probe.total.stalls == 0 && summary.wakeup.is_none() {
        return;
    }
    page.prose(
        Some(Tone::Warning),
        0,
        "By whom is not known: no kernel events were recorded.",
    );
    sources(page, summary, 0);
}

fn sources(page: &mut Page, summary: &RunSummary, indent: usize) {
    for source in summary
        .sources
        .iter()
        .filter(|s| s.status != SourceStatus::Available)
    {
        let SourceWords { reason, fix, .. } = source_words(&source.problems, &source.losses);
        if fix.is_empty() {
            continue;
        }
        let text = format!(
            "{} {}: {reason}. To have it: {fix}.",
            source.name,
            source.status.as_str()
        );
        page.prose(Some(Tone::Warning), indent, &text);
    }
}

/// Counters of the kernel, those first that rose with the stolen time.
fn counters(page: &mut Page, summary: &RunSummary) {
    let mut counters: Vec<_> = summary
        .counters
        .iter()
        .filter(|counter| counter.total > 0)
        .collect();
    if counters.is_empty() {
        return;
    }
    counters.sort_by(|a, b| {
        let of = |c: &jitterscope_model::CounterTotal| c.correlation.unwrap_or(-2.0);
        of(b)
            .total_cmp(&of(a))
            .then(b.total.cmp(&a.total))
            .then(a.name.cmp(&b.name))
    });
    page.line("");
    page.prose(
        None,
        2,
        "Counters that rose meanwhile; correlation with the stolen time, which proves nothing:",
    );
    page.line(
        &page
            .style
            .paint(Tone::Dim, "   cpu       rise  correlation  counter"),
    );
    let room = page.style.columns() - 33;
    for counter in counters.iter().take(SHOWN) {
        let correlation = counter
            .correlation
            .map_or_else(|| "-".into(), |r| format!("{r:+.2}"));
        page.line(&format!(
            "{:>6} {:>10} {correlation:>12}  {}",
            counter.cpu,
            count(counter.total),
            fit(&counter.name, room)
        ));
    }
    if counters.len() > SHOWN {
        let text = pad(
            &format!(
                "{:>6} {} more (--json lists them)",
                "",
                counters.len() - SHOWN
            ),
            60,
        );
        page.line(&page.style.paint(Tone::Dim, &text));
    }
}
