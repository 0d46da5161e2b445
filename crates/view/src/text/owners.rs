//! Whose threads took the time: units, containers, pods and other control groups.

use crate::number::{count, percent_cell};
use crate::report::{Cell, Column, Report, Row, Table};
use crate::style::{Tone, tame};
use crate::timeline::StallKind;
use jitterscope_analyze::{AttributionSummary, OwnerRow, RunSummary};
use jitterscope_model::{GroupPath, Nanos};

/// The number of owners in short views.
const SHOWN: usize = 8;

/// The owners, unless no thread is known to be in a group of its own.
pub(super) fn report(summary: &RunSummary, attribution: &AttributionSummary) -> Report {
    let mut report = Report::default();
    let owners = &attribution.owners;
    let tells = |row: &OwnerRow| row.cgroup.as_deref().is_some_and(|path| path != "/");
    if !owners.iter().any(tells) {
        return report;
    }
    let (shown, rest) = owners.split_at(SHOWN.min(owners.len()));
    let share = percent_cell(rest.iter().map(|row| row.share).sum());
    let total: Nanos = rest.iter().map(|row| row.total_ns).sum();
    let others = Row::rest(rest.len(), String::new(), [share, total.to_string()]);
    let noun = StallKind::of_probe(&summary.probe.kind).noun();
    report.rows(Table {
        title: "Threads, by their unit, container or control group".into(),
        columns: vec![
            Column::text("whose threads"),
            Column::number("share"),
            Column::number("total"),
            Column::number(noun.many),
            Column::number("max"),
        ],
        rows: shown.iter().map(row).chain(others).collect(),
        remarks: "what it is",
        aside: "which took less",
    });
    report
}

fn row(of: &OwnerRow) -> Row {
    let group = of.cgroup.as_deref().map(GroupPath);
    let name = match group {
        Some(group) => tame(&group.to_string()),
        None => "group not known".into(),
    };
    let threads: Vec<String> = of.threads.iter().map(|name| tame(name)).collect();
    let user = of.uid.map(|uid| format!("user {uid}"));
    let detail: Vec<String> = user.into_iter().chain(threads).collect();
    let tone = if group.is_some() {
        Tone::Strong
    } else {
        Tone::Warning
    };
    Row::from([
        Cell {
            detail: detail.join(", "),
            ..Cell::toned(name, tone)
        },
        percent_cell(of.share).into(),
        of.total_ns.to_string().into(),
        count(of.count).into(),
        of.max_ns.to_string().into(),
    ])
}
