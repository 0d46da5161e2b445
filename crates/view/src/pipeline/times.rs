//! How long messages take.

use crate::number::count;
use crate::report::{Cell, Column, Row, Table};
use crate::style::Tone;
use jitterscope_analyze::{MESSAGE_LEVELS, PipelineSummary, TimesSummary};
use std::fmt::Display;

/// The times of each thread.
pub(crate) fn table(pipeline: &PipelineSummary) -> Table {
    let mut rows = Vec::new();
    for consumer in &pipeline.consumers {
        let times = [
            ("queue transit", &consumer.transit),
            ("from intended", &consumer.from_intended),
            ("between", &consumer.inter),
        ];
        rows.extend(group(consumer.role, times));
    }
    let producer = &pipeline.producer;
    let times = [
        ("late by", &producer.lateness),
        ("between", &producer.inter),
    ];
    rows.extend(group("producer", times));
    let mut columns = vec![
        Column::text("time"),
        Column::number("messages").of_pages(),
        Column::number("min"),
        Column::number("mean").of_rank(2),
    ];
    columns.extend(MESSAGE_LEVELS.iter().map(|(name, _)| match *name {
        "90" => Column::number(*name).of_rank(1),
        name => Column::number(name),
    }));
    columns.push(Column::number("max"));
    Table {
        title: "Messages by time".into(),
        columns,
        rows,
        ..Table::default()
    }
}

/// The rows of a thread.
fn group<const N: usize>(role: impl Display, times: [(&str, &TimesSummary); N]) -> [Row; N] {
    let mut rows = times.map(|(name, times)| row(name, times));
    if let Some(first) = rows.first_mut() {
        first.group = Some(Cell::toned(format!("{role}:"), Tone::Strong));
    }
    rows
}

fn row(name: &str, times: &TimesSummary) -> Row {
    let mut row: Vec<Cell> = vec![
        name.into(),
        count(times.count).into(),
        times.min_ns.to_string().into(),
        times.mean_ns.to_string().into(),
    ];
    row.extend(
        MESSAGE_LEVELS
            .iter()
            .map(|(level, _)| Cell::known(times.supported(level))),
    );
    row.push(times.max_ns.to_string().into());
    row.into()
}
