//! What a pipeline's messages took, and who held them up.

use super::charts;
use super::markup::{Cell, Head, Markup};
use crate::chart::ChartKind;
use crate::drawn::Drawn;
use crate::number::{count, percent_cell, rate, span};
use crate::text::Statement;
use crate::words;
use jitterscope_analyze::{
    Blame, BlameLevel, BlameRow, MESSAGE_LEVELS, PipelineSummary, RunSummary, TimesSummary,
};

/// Rows of blame.
const ROWS: usize = 16;

pub(super) fn verdict(summary: &RunSummary) -> Vec<Statement> {
    let Some(pipeline) = &summary.pipeline else {
        return Vec::new();
    };
    let mut statements = Vec::new();
    for consumer in &pipeline.consumers {
        let times = &consumer.from_intended;
        let within: String = [("50", "half of them"), ("99", "99 %"), ("99.99", "99.99 %")]
            .iter()
            .filter_map(|(level, who)| Some((who, times.supported(level)?)))
            .enumerate()
            .map(|(at, (who, time))| match at {
                0 => format!("{who} within {time} of the intended time, "),
                _ => format!("{who} within {time}, "),
            })
            .collect();
        statements.push(Statement::plain(format!(
            "The {} received {} messages in {} ({} a second): {within}the slowest in {}. {} took longer than {}.",
            consumer.role,
            count(consumer.received),
            span(pipeline.duration_ns),
            rate(pipeline.producer.per_sec),
            times.max_ns,
            count(consumer.slow),
            consumer.slow_above_ns,
        )));
    }
    let worst = pipeline
        .blame
        .iter()
        .filter(|blame| blame.level == BlameLevel::Slow);
    for blame in worst {
        if let Some(row) = blame.rows.first() {
            statements.push(Statement::plain(format!(
                "{} of the {}'s slow messages' time: {}.",
                percent_cell(row.share),
                blame.role,
                words::phase_and_name(Some(&row.phase), &row.subject)
            )));
        }
    }
    statements
}

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
    for blame in &pipeline.blame {
        held_up(body, blame);
    }
    body.end();
}

/// The same of a run that is beside another.
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
    if blame.rows.is_empty() {
        return;
    }
    let (role, above) = (blame.role, count(blame.above));
    let caption = match blame.level {
        BlameLevel::AboveP99 => format!(
            "Who held up the {role}'s messages above the 99th percentile: {above} longer than {}",
            blame.longer_than_ns
        ),
        BlameLevel::Slow => format!("Who held up the {role}'s slow messages: {above}"),
    };
    let caption = match blame.split < blame.above {
        true => format!(
            "{caption}, of which {} have a row and are explained",
            count(blame.split)
        ),
        false => caption,
    };
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
