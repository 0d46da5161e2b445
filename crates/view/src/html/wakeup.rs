//! The lateness of wake-ups.

use super::markup::{Cell, Head, Markup};
use crate::number::{count, percent_cell};
use jitterscope_analyze::{FineNanos, Lateness, Percentiles, PhaseRow, RunSummary, WakeupSummary};
use jitterscope_model::Nanos;

const LEVELS: [&str; 5] = ["50", "90", "99", "99.9", "99.99"];

pub(super) fn render(body: &mut Markup, summary: &RunSummary, wakeup: &WakeupSummary) {
    body.section("lateness", "Lateness");
    let mut heads = vec![
        Head::Text("CPU"),
        Head::Text("counted"),
        Head::Number("wake-ups"),
        Head::Number("slept through"),
        Head::Number("late"),
        Head::Number("least"),
        Head::Number("mean"),
    ];
    heads.extend(["50 %", "90 %", "99 %", "99.9 %", "99.99 %"].map(Head::Number));
    heads.push(Head::Number("most"));
    let mut rows = Vec::new();
    for cpu in &wakeup.cpus {
        let name = if cpu.idle_control {
            format!("{} (idle control)", cpu.cpu)
        } else {
            cpu.cpu.to_string()
        };
        rows.extend(both(&name, &cpu.lateness));
    }
    if wakeup.cpus.len() > 1 {
        rows.extend(both("all measured", &wakeup.total));
    }
    body.table("Lateness of wake-ups", &heads, rows);
    body.note(
        "Plain: each wake-up as it was, as cyclictest counts. Corrected: deadlines that were slept through are \
         filled in, each late by what was left, as jHiccup counts.",
    );
    phases(
        body,
        &format!(
            "What wake-ups of {} or more late were spent on",
            summary.probe.threshold_ns
        ),
        &wakeup.phases,
    );
    if let Some(control) = &wakeup.idle_control {
        phases(
            body,
            &format!("The same of idle CPU {}, to compare with", control.cpu),
            &control.phases,
        );
    }
    body.end();
}

fn both(name: &str, of: &Lateness) -> [Vec<Cell>; 2] {
    let whole =
        |ns: Option<Nanos>| Cell::Number(ns.map_or_else(|| "\u{2013}".into(), |ns| ns.to_string()));
    let fine = |ns: Option<FineNanos>| {
        Cell::Number(ns.map_or_else(|| "\u{2013}".into(), |ns| ns.to_string()))
    };
    let counted_if_known =
        |n: Option<u64>| Cell::Number(n.map_or_else(|| "\u{2013}".into(), count));
    let row = |counted: &str, mean, levels: &Percentiles| {
        let mut row = vec![
            Cell::Text(name.to_owned()),
            Cell::Text(counted.to_owned()),
            counted_if_known(of.wakeups),
            counted_if_known(of.missed),
            Cell::Number(count(of.late)),
            whole(of.min_ns),
            fine(mean),
        ];
        row.extend(LEVELS.map(|level| fine(levels.get(level).copied().flatten())));
        row.push(whole(of.max_ns));
        row
    };
    [
        row("plain", of.mean_ns, &of.percentiles_ns),
        row(
            "corrected",
            of.corrected_mean_ns,
            &of.corrected_percentiles_ns,
        ),
    ]
}

fn phases(body: &mut Markup, caption: &str, phases: &[PhaseRow]) {
    if phases.is_empty() {
        return;
    }
    let heads = [
        Head::Text("phase"),
        Head::Number("share"),
        Head::Number("total"),
        Head::Number("wake-ups"),
        Head::Number("mean"),
        Head::Number("longest"),
    ];
    let row = |row: &PhaseRow| {
        vec![
            Cell::Text(row.phase.to_string()),
            Cell::Number(percent_cell(row.share)),
            Cell::Number(row.total_ns.to_string()),
            Cell::Number(count(row.count)),
            Cell::Number(row.mean_ns.to_string()),
            Cell::Number(row.max_ns.to_string()),
        ]
    };
    body.table(caption, &heads, phases.iter().map(row).collect());
}
