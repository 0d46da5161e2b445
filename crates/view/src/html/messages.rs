//! The times of a pipeline's messages, and what delayed them.

use super::charts;
use super::markup::Markup;
use crate::chart::ChartKind;
use crate::drawn::Drawn;
use crate::pipeline::{blame, times};
use crate::report::Links;
use jitterscope_analyze::PipelineSummary;

pub(super) fn render(body: &mut Markup, run: &Drawn, pipeline: &PipelineSummary) {
    let links = &Links::default();
    body.section("messages", "Messages");
    if charts::figure(body, run, ChartKind::Histograms) {
        body.note(
            "From the intended time is what the verdict tells: from when a message was due until it was \
             received, which a producer that is late makes longer too. Queue transit begins when it was \
             published.",
        );
    }
    times::table(pipeline).html(body, links);
    if run.summary.withheld().is_empty() {
        let consumers = pipeline.consumers.iter();
        for held_up in consumers.filter_map(|consumer| pipeline.held_up(consumer.role)) {
            blame::held_up(held_up).html(body, links);
        }
    }
    body.end();
}

/// The table of a run that is shown beside another.
pub(super) fn table_of(body: &mut Markup, run: &Drawn) {
    if let Some(pipeline) = &run.summary.pipeline {
        let table = times::table(pipeline);
        body.details("As a table", |body| table.html(body, &Links::default()));
    }
}
