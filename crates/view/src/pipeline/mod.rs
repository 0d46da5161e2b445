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

/// The whole report: the ancestor's formats as asked for, then our own part.
#[must_use]
pub fn render(summary: &RunSummary, pipeline: &PipelineSummary, formats: &[Format], style: Style) -> String {
    let mut page = Page::new(style);
    text::render(&mut page, summary, pipeline);
    crate::text::periods::render(&mut page, summary);
    page.warnings(summary);
    format!("{}{}", ancestor::render(pipeline, formats), page.into_text())
}
