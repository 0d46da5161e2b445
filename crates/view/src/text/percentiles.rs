//! Percentiles for three different questions.

use super::{FEW_CPUS, Page};
use crate::report::{Cell, Column, Row, Table};
use crate::style::Tone;
use jitterscope_analyze::{Percentiles, RunSummary};
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
        let of = [
            &total.percentiles_ns,
            &total.instant_percentiles_ns,
            &total.stall_percentiles_ns,
        ];
        rows.extend(three("all", of, total.max_ns, total.stalls));
    } else {
        for cpu in &summary.probe.cpus {
            let of = [
                &cpu.percentiles_ns,
                &cpu.instant_percentiles_ns,
                &cpu.stall_percentiles_ns,
            ];
            rows.extend(three(&cpu.cpu.to_string(), of, cpu.max_ns, cpu.stalls));
        }
    }
    let mut columns = vec![Column::number("cpu"), Column::text("of")];
    columns.extend(NAMES.into_iter().chain(["max"]).map(Column::number));
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

fn three(cpu: &str, of: [&Percentiles; 3], max: Option<Nanos>, stalls: u64) -> Vec<Row> {
    let rows = ["read", "wait", "stall"].into_iter().zip(of);
    let row = |(name, percentiles): (&str, &Percentiles)| {
        let mut row: Vec<Cell> = vec![cpu.into(), name.into()];
        row.extend(NAMES.map(|level| Cell::known(percentiles.get(level).copied().flatten())));
        row.push(Cell::known(max));
        Row::from(row)
    };
    rows.filter(|(name, _)| *name != "stall" || stalls > 0)
        .map(row)
        .collect()
}
