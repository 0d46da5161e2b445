//! Threads that were followed: how much of their time they waited, and for how long at worst.

use super::Ranking;
use crate::number::{percent, span};
use crate::style::Tone;
use crate::text::Page;
use crate::text::threads::{head, lost, name, row, stopped};
use jitterscope_analyze::RunSummary;
use jitterscope_model::{Nanos, ThreadAccount};

/// Threads told one by one.
const SHOWN: usize = 3;

pub(super) fn render<'a>(page: &mut Page, summary: &'a RunSummary) -> Option<Ranking<'a>> {
    let mut threads: Vec<&ThreadAccount> = summary.threads.iter().collect();
    threads.sort_by_key(|thread| (std::cmp::Reverse(lost(thread)), thread.tid));
    let sum = |of: fn(&ThreadAccount) -> Nanos| threads.iter().map(|thread| of(thread)).sum::<Nanos>();
    let (ran, waited) = (sum(|thread| thread.running_ns), sum(|thread| thread.waiting_ns));
    let wanted = Nanos(ran.0.saturating_add(waited.0));
    let run = span(summary.run.duration_ns);
    // Several threads together may well have wanted more than the time that there was.
    let when = match threads.as_slice() {
        [one] => format!("{} (pid {}) wanted a CPU for {wanted} of {run}", name(one), one.tid),
        several => format!("{} threads wanted a CPU for {wanted} together, in {run}", several.len()),
    };
    let text = format!(
        "{when}, and waited {waited} of that for one ({}).",
        percent(waited.0 as f64 / wanted.0.max(1) as f64),
    );
    let bad = waited.0 as f64 >= 0.01 * wanted.0.max(1) as f64;
    page.prose(Some(if bad { Tone::Bad } else { Tone::Strong }), 0, &text);
    if let Some(text) = stopped(sum(|thread| thread.stopped_ns), threads.len() > 1) {
        page.prose(Some(Tone::Warning), 0, &text);
    }
    super::longest(page, summary);
    if threads.len() > 1 {
        table(page, &threads);
    }
    summary.attribution.as_ref().and_then(|attribution| Ranking::of_culprits(summary, attribution))
}

/// Those that lost most; those that never wanted a CPU take one line together.
fn table(page: &mut Page, threads: &[&ThreadAccount]) {
    page.line("");
    page.line(&head(page.style));
    let idle = |thread: &&&ThreadAccount| thread.running_ns.0 == 0 && lost(thread).0 == 0;
    let busy: Vec<&ThreadAccount> = threads.iter().filter(|thread| !idle(thread)).copied().collect();
    for thread in busy.iter().take(SHOWN) {
        row(page, thread);
    }
    let more = busy.len().saturating_sub(SHOWN);
    let idle = threads.len() - busy.len();
    let mut rest = Vec::new();
    rest.extend((more > 0).then(|| format!("{more} more, which lost less")));
    rest.extend((idle > 0).then(|| format!("{idle} that never ran")));
    if !rest.is_empty() {
        page.prose(Some(Tone::Dim), 2, &rest.join("; "));
    }
    let unknown: Nanos = threads.iter().map(|thread| thread.unknown_ns).sum();
    let all: Nanos = threads.iter().map(|thread| thread.followed_ns()).sum();
    if unknown.0 > all.0 / 100 {
        let text = format!("of {unknown} of their time no record tells what they did");
        page.prose(Some(Tone::Warning), 2, &text);
    }
}
