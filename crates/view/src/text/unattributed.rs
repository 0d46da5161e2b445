//! Why there are no culprits, and what is known instead.

use super::Page;
use crate::number::{count, percent};
use crate::report::{Cell, Column, Row, Table};
use crate::sources::source_words;
use crate::style::Tone;
use crate::warnings;
use jitterscope_analyze::{RunSummary, SourceWords};
use jitterscope_model::{CounterTotal, Nanos, PutInOrder, SourceStatus, Warning};

const SHOWN: usize = 10;

pub(super) fn render(page: &mut Page, summary: &RunSummary) {
    let (title, what) = match summary.wakeup {
        Some(_) => ("WHO MADE IT LATE", "Lateness was measured"),
        None => ("WHO STOLE IT", "Stalls were measured"),
    };
    page.heading(title, "not known");
    let text = format!("{what}, but no kernel events were recorded to name culprits.");
    page.prose(None, 2, &text);
    sources(page, summary);
    counters(page, summary);
}

/// The host's share of the measured time, as the kernel counts it; `None` if it does not.
pub(crate) fn host_share(summary: &RunSummary) -> Option<String> {
    let measured = summary.probe.total.measured_ns;
    let stolen = summary.host_ns().filter(|_| measured > Nanos::ZERO)?;
    if summary.run.hypervisor.is_none() {
        return Some("no host had a share: this is no virtual machine".into());
    }
    let step = RunSummary::HOST_STEP;
    Some(match stolen {
        Nanos(0) => format!("the host's share is 0 % (the kernel counts it in steps of {step})"),
        stolen => format!(
            "the host's share is {}, {stolen} (the kernel counts it in steps of {step})",
            percent(stolen.0 as f64 / measured.0 as f64)
        ),
    })
}

/// Why no culprits are named and how to get them, for a report on one screen.
pub(super) fn reason(page: &mut Page, summary: &RunSummary) {
    let mut all = summary.warnings.iter().map(|one| &one.warning);
    let text = match all.find(|warning| is_reason(summary, warning)) {
        Some(warning) => warnings::warning(warning),
        None => "The culprits are not known: no kernel events were recorded.".into(),
    };
    page.prose(Some(Tone::Warning), 0, &text);
}

/// Whether [`reason`] reports this warning.
pub(super) fn is_reason(summary: &RunSummary, warning: &Warning) -> bool {
    let probes =
        summary.pipeline.is_none() && summary.threads.is_empty() && summary.passive.is_empty();
    let nobody_is_named = probes && summary.attribution.is_none();
    nobody_is_named && matches!(warning, Warning::NoKernelEvents(_))
}

fn sources(page: &mut Page, summary: &RunSummary) {
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
        page.prose(Some(Tone::Warning), 2, &text);
    }
}

/// Kernel counters, those first that rose with the stolen time.
fn counters(page: &mut Page, summary: &RunSummary) {
    let mut counters: Vec<_> = summary
        .counters
        .iter()
        .filter(|counter| counter.total > 0)
        .collect();
    if counters.is_empty() {
        return;
    }
    counters.order_by(|a, b| {
        let of = |c: &CounterTotal| c.correlation.unwrap_or(-2.0);
        of(b)
            .total_cmp(&of(a))
            .then(b.total.cmp(&a.total))
            .then(a.name.cmp(&b.name))
    });
    let text = "Counters that rose during the run, by correlation with the stolen time (no proof of cause):";
    page.prose(None, 2, text);
    let row = |(at, counter): (usize, &&CounterTotal)| Row {
        aside: at >= SHOWN,
        ..Row::from([
            counter.name.as_str().into(),
            counter.cpu.to_string().into(),
            count(counter.total).into(),
            Cell::known(counter.correlation.map(|r| format!("{r:+.2}"))),
        ])
    };
    page.table(Table {
        title: "Counters that rose".into(),
        columns: [Column::text("counter")]
            .into_iter()
            .chain(Column::numbers(["cpu", "rise", "correlation"]))
            .collect(),
        rows: counters.iter().enumerate().map(row).collect(),
        aside: "which --json lists",
        ..Table::default()
    });
}
