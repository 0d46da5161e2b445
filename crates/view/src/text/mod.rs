//! A run as text for a terminal: how much was stolen, the culprits, the worst stall, percentiles, and the trust in all
//! that, in this order.

mod brief;
mod cpus;
pub(crate) mod culprits;
pub(crate) mod headline;
pub(crate) mod marks;
mod over_time;
mod owners;
mod page;
pub(crate) mod passive;
mod percentiles;
pub(crate) mod periods;
pub(crate) mod price;
pub(crate) mod threads;
pub(crate) mod trust;
mod unattributed;
pub(crate) mod wakeup;
pub(crate) mod worst;

pub use brief::{Next, Step, brief};
pub(crate) use brief::{cpus, message_headline, messages};
pub use marks::report as marks_report;
pub(crate) use page::Page;
pub(crate) use periods::not_looked_for;
pub use periods::periods_table;
pub(crate) use unattributed::host_share;

pub use headline::unproven;

use crate::lines::short_cpus_text;
use crate::profile;
use crate::report::Report;
use crate::style::Style;
use jitterscope_analyze::RunSummary;
use jitterscope_model::{CpuSet, ProbeKind};

/// With more CPUs than this, the report has a table of CPUs and percentiles of the total.
const FEW_CPUS: usize = 4;

/// The whole report. Its tables are laid out for `style`.
#[must_use]
pub fn render(summary: &RunSummary, style: Style) -> Report {
    match ProbeKind::from_word(&summary.probe.kind) {
        Some(ProbeKind::Attach) => return followed(summary, style),
        Some(ProbeKind::Passive) => return watched(summary, style),
        _ => {}
    }
    if let Some(pipeline) = &summary.pipeline {
        return crate::pipeline::full(summary, pipeline, style);
    }
    let mut page = Page::new(style);
    page.append(profile::report(summary));
    headline::render(&mut page, summary);
    if let Some(wakeup) = summary
        .wakeup
        .as_ref()
        .filter(|_| summary.withheld().is_empty())
    {
        wakeup::phases(&mut page, summary, wakeup);
    }
    match &summary.attribution {
        Some(attribution) => culprits::render(&mut page, summary, attribution),
        None => unattributed::render(&mut page, summary),
    }
    if summary.withheld().is_empty() {
        periods::render(&mut page, summary);
    }
    marks::render(&mut page, summary);
    worst::render(&mut page, summary);
    match &summary.wakeup {
        Some(wakeup) => wakeup::percentiles(&mut page, wakeup),
        None => percentiles::render(&mut page, summary),
    }
    trust::render(&mut page, summary);
    page.warnings(summary);
    page.into_report()
}

/// The report on followed threads, without a probe's measurement.
fn followed(summary: &RunSummary, style: Style) -> Report {
    let mut page = Page::new(style);
    headline::title(&mut page, summary, &CpuSet::new());
    page.line("");
    threads::headline(&mut page, summary);
    brief::longest(&mut page, summary);
    page.worst_case(summary);
    headline::doubts(&mut page, summary);
    threads::render(&mut page, "THREADS", summary);
    if let Some(attribution) = &summary.attribution {
        culprits::render(&mut page, summary, attribution);
    }
    periods::render(&mut page, summary);
    marks::render(&mut page, summary);
    worst::render(&mut page, summary);
    trust::render(&mut page, summary);
    page.warnings(summary);
    page.into_report()
}

/// The measurement in sentences: those at the beginning of a report.
pub(crate) fn verdict(summary: &RunSummary) -> Report {
    let mut page = Page::new(Style::default());
    page.append(profile::report(summary));
    let cpus: CpuSet = summary.probe.cpus.iter().map(|cpu| cpu.cpu).collect();
    let kind = ProbeKind::from_word(&summary.probe.kind);
    match (&summary.wakeup, &summary.pipeline) {
        (Some(wakeup), _) => wakeup::headline(&mut page, summary, wakeup),
        (None, Some(pipeline)) => message_headline(&mut page, summary, pipeline),
        _ if kind == Some(ProbeKind::Passive) => passive::headline(&mut page, summary),
        _ if kind == Some(ProbeKind::Attach) || cpus.is_empty() => {
            threads::headline(&mut page, summary);
            brief::longest(&mut page, summary);
        }
        _ => headline::stolen(&mut page, summary, &cpus),
    }
    page.into_report()
}

/// The report on watched CPUs: their owners, and what was stolen by which culprits.
fn watched(summary: &RunSummary, style: Style) -> Report {
    let mut page = Page::new(style);
    let cpus: CpuSet = summary.passive.iter().map(|cpu| cpu.cpu).collect();
    page.append(profile::report(summary));
    headline::title(&mut page, summary, &cpus);
    headline::doubts(&mut page, summary);
    passive::render(&mut page, summary);
    page.worst_case(summary);
    over_time::render(&mut page, summary);
    if let Some(attribution) = &summary.attribution {
        culprits::render(&mut page, summary, attribution);
    }
    marks::render(&mut page, summary);
    worst::render(&mut page, summary);
    trust::render(&mut page, summary);
    page.warnings(summary);
    page.into_report()
}
