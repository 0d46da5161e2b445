//! A pipeline run as text: perf-workshop's tables, then jitterscope's own part.

mod ancestor;
pub(crate) mod blame;
pub mod journal;
pub mod progress;
mod text;
pub(crate) mod times;

pub use ancestor::{Format, inter_title, long, name, short, titled, transit_title};

use crate::report::Report;
use crate::style::Style;
use crate::text::Page;
use jitterscope_analyze::{PipelineSummary, RunSummary};

/// The whole report in jitterscope's order: the headline first, perf-workshop's tables last.
#[must_use]
pub(crate) fn full(summary: &RunSummary, pipeline: &PipelineSummary, style: Style) -> Report {
    let mut report = own(summary, pipeline, style);
    report.line("");
    report.lines(&ancestor::render(pipeline, &[Format::Long]));
    report
}

/// The whole report: the requested formats of perf-workshop, then jitterscope's own part.
#[must_use]
pub fn render(
    summary: &RunSummary,
    pipeline: &PipelineSummary,
    formats: &[Format],
    style: Style,
) -> Report {
    let mut report = Report::default();
    report.lines(&ancestor::render(pipeline, formats));
    report.append(own(summary, pipeline, style));
    report
}

/// Everything except perf-workshop's tables.
fn own(summary: &RunSummary, pipeline: &PipelineSummary, style: Style) -> Report {
    let mut page = Page::new(style);
    text::render(&mut page, summary, pipeline);
    crate::text::periods::render(&mut page, summary);
    page.warnings(summary);
    page.into_report()
}
