//! Percentiles for three different questions.

use super::{FEW_CPUS, Page};
use crate::report::{Cell, Column, Row, Table};
use crate::style::Tone;
use jitterscope_analyze::{FineNanos, Percentiles, RunSummary};
use jitterscope_model::Nanos;

const NAMES: [&str; 7] = ["50", "90", "99", "99.9", "99.99", "99.999", "99.9999"];

pub(super) fn render(page: &mut Page, summary: &RunSummary) {
    let total = &summary.probe.total;
    if total.max_ns.is_none() {
        return;
    }
    page.heading("PERCENTILES", "");
    let mut rows = Vec::new();
    if summary.probe.cpus.len() > FEW_CPUS {
        rows.extend(three(&Distributions {
            cpu: "all".into(),
            read: [total.min_ns, total.mean_ns],
            stall: [total.stall_min_ns.map(fine), total.stall_mean_ns],
            percentiles: [
                &total.percentiles_ns,
                &total.instant_percentiles_ns,
                &total.stall_percentiles_ns,
            ],
            max: total.max_ns,
            stalls: total.stalls,
        }));
    } else {
        for cpu in &summary.probe.cpus {
            rows.extend(three(&Distributions {
                cpu: cpu.cpu.to_string(),
                read: [cpu.floor_ns, cpu.mean_ns],
                stall: [cpu.stall_min_ns.map(fine), cpu.stall_mean_ns],
                percentiles: [
                    &cpu.percentiles_ns,
                    &cpu.instant_percentiles_ns,
                    &cpu.stall_percentiles_ns,
                ],
                max: cpu.max_ns,
                stalls: cpu.stalls,
            }));
        }
    }
    let mut columns = vec![Column::number("cpu"), Column::text("of")];
    columns.push(Column::number("min"));
    columns.push(Column::number("mean").of_rank(2));
    columns.extend(NAMES.map(|name| match name {
        "90" => Column::number(name).of_rank(1),
        _ => Column::number(name),
    }));
    columns.push(Column::number("max"));
    page.table(Table {
        title: "Percentiles".into(),
        columns,
        rows,
        ..Table::default()
    });
    let text = "read: time between clock reads. wait: what a random moment waits until the CPU is back, so \
                long stalls weigh by their length. stall: stalls alone (- where fewer than ten lie above).";
    page.prose(Some(Tone::Dim), 2, text);
}

fn fine(whole: Nanos) -> FineNanos {
    FineNanos(whole.0 as f64)
}

/// The distributions of one CPU, or of all.
struct Distributions<'s> {
    cpu: String,
    /// The minimum and the mean of the times between two reads.
    read: [Option<FineNanos>; 2],
    /// The same of stalls.
    stall: [Option<FineNanos>; 2],
    /// Of reads, waits and stalls.
    percentiles: [&'s Percentiles; 3],
    max: Option<Nanos>,
    stalls: u64,
}

fn three(of: &Distributions<'_>) -> Vec<Row> {
    let least_and_mean = [of.read, [None, None], of.stall];
    let rows = ["read", "wait", "stall"].into_iter().zip(least_and_mean);
    let row = |((name, least_and_mean), percentiles): ((&str, [_; 2]), &&Percentiles)| {
        let mut row: Vec<Cell> = vec![of.cpu.as_str().into(), name.into()];
        row.extend(least_and_mean.map(Cell::known));
        row.extend(NAMES.map(|level| Cell::known(percentiles.get(level).copied().flatten())));
        row.push(Cell::known(of.max));
        Row::from(row)
    };
    rows.zip(&of.percentiles)
        .filter(|((name, _), _)| *name != "stall" || of.stalls > 0)
        .map(row)
        .collect()
}
