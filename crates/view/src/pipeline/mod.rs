//! A run of the pipeline as text: the ancestor's tables, then what it did not tell.

mod ancestor;
mod blame;
pub mod journal;
pub mod progress;
mod text;

pub use ancestor::{Format, inter_title, long, name, short, titled, transit_title};
pub(crate) use blame::told_of;

use crate::style::Style;
use crate::text::Page;
use jitterscope_analyze::{PipelineSummary, RunSummary};

/// The whole report in our own order: the headline first, the ancestor's tables last.
#[must_use]
pub(crate) fn full(summary: &RunSummary, pipeline: &PipelineSummary, style: Style) -> String {
    format!(
        "{}\n{}",
        own(summary, pipeline, style),
        ancestor::render(pipeline, &[Format::Long])
    )
}

/// The whole report: the ancestor's formats as asked for, then our own part.
#[must_use]
pub fn render(
    summary: &RunSummary,
    pipeline: &PipelineSummary,
    formats: &[Format],
    style: Style,
) -> String {
    format!(
        "{}{}",
        ancestor::render(pipeline, formats),
        own(summary, pipeline, style)
    )
}

/// All but the ancestor's tables.
fn own(summary: &RunSummary, pipeline: &PipelineSummary, style: Style) -> String {
    let mut page = Page::new(style);
    text::render(&mut page, summary, pipeline);
    crate::text::periods::render(&mut page, summary);
    page.warnings(summary);
    page.into_text()
}
