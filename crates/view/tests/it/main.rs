//! The crate's integration tests, linked once.

#[path = "../common/mod.rs"]
mod common;
#[path = "../pictured/mod.rs"]
mod pictured;

mod agreement;
mod beside;
mod brief;
mod culprits;
mod golden;
mod knobs;
mod many_cpus;
mod pictures;
mod stored;
mod top;

/// The whole report as a terminal shows it.
fn full_text(summary: &jitterscope_analyze::RunSummary, style: jitterscope_view::Style) -> String {
    jitterscope_view::text::render(summary, style).terminal(style)
}
