//! The times of a pipeline's messages, and what delayed them.

use super::charts;
use super::markup::{Cell, Head, Markup};
use crate::chart::ChartKind;
use crate::drawn::Drawn;
use crate::number::{count, percent_cell};
use crate::text;
use crate::words;
use jitterscope_analyze::{Blame, BlameRow, MESSAGE_LEVELS, PipelineSummary, TimesSummary};

const ROWS: usize = 16;

pub(super) fn render(body: &mut Markup, run: &Drawn, pipeline: &PipelineSummary) {
    body.section("messages", "Messages");
    if charts::figure(body, run, ChartKind::Histograms) {
        body.note(
            "From the intended time is what the verdict tells: from when a message was due until it was \
             received, which a producer that is late makes longer too. Queue transit begins when it was \
             published.",
        );
    }
    times_table(body, pipeline);
    if run.summary.withheld().is_empty() {
        let consumers = pipeline.consumers.iter();
        for blame in consumers.filter_map(|consumer| pipeline.held_up(consumer.role)) {
            held_up(body, blame);
        }
    }
    body.end();
}

/// The table of a run that is shown beside another.
pub(super) fn table_of(body: &mut Markup, run: &Drawn) {
    if let Some(pipeline) = &run.summary.pipeline {
        body.details("As a table", |body| times_table(body, pipeline));
    }
}

fn times_table(body: &mut Markup, pipeline: &PipelineSummary) {
    let mut heads = vec![
        Head::Text("time"),
        Head::Number("messages"),
        Head::Number("mean"),
        Head::Number("least"),
    ];
    heads.extend(
        [
            "50 %",
            "90 %",
            "99 %",
            "99.9 %",
            "99.99 %",
            "99.999 %",
            "99.9999 %",
        ]
        .map(Head::Number),
    );
    heads.push(Head::Number("most"));
    let mut rows = vec![
        times("producer, between publications", &pipeline.producer.inter),
        times("producer, lateness", &pipeline.producer.lateness),
    ];
    for consumer in &pipeline.consumers {
        let role = consumer.role;
        rows.push(times(&format!("{role}, queue transit"), &consumer.transit));
        rows.push(times(
            &format!("{role}, from the intended time"),
            &consumer.from_intended,
        ));
        rows.push(times(&format!("{role}, between messages"), &consumer.inter));
    }
    body.table("Messages by time", &heads, rows);
}

fn times(name: &str, times: &TimesSummary) -> Vec<Cell> {
    let mut row = vec![
        Cell::Text(name.to_owned()),
        Cell::Number(count(times.count)),
        Cell::Number(times.mean_ns.to_string()),
        Cell::Number(times.min_ns.to_string()),
    ];
    row.extend(MESSAGE_LEVELS.iter().map(|(level, _)| {
        Cell::Number(
            times
                .supported(level)
                .map_or_else(|| "\u{2013}".into(), |time| time.to_string()),
        )
    }));
    row.push(Cell::Number(times.max_ns.to_string()));
    row
}

fn held_up(body: &mut Markup, blame: &Blame) {
    let caption = format!("What {} were made of", text::messages(blame));
    let heads = [
        Head::Text("where: who"),
        Head::Number("share"),
        Head::Number("total"),
        Head::Number("messages"),
        Head::Number("longest"),
    ];
    let row = |row: &BlameRow| {
        vec![
            Cell::Text(words::phase_and_name(Some(&row.phase), &row.subject)),
            Cell::Number(percent_cell(row.share)),
            Cell::Number(row.total_ns.to_string()),
            Cell::Number(count(row.messages)),
            Cell::Number(row.max_ns.to_string()),
        ]
    };
    body.table(
        &caption,
        &heads,
        blame.rows.iter().take(ROWS).map(row).collect(),
    );
}
