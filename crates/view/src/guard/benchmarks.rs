//! What the tool within a guarded command measured, and the change from stored times.

use crate::number::percent;
use crate::report::{Cell, Column, Row, Table};
use crate::style::Tone;
use jitterscope_analyze::guard::results::{BenchmarkSummary, BenchmarkTool};
use jitterscope_analyze::guard::{BaselineChange, Series};
use jitterscope_model::{Nanos, visible};

/// How these times are to be read.
pub(super) fn note(tool: BenchmarkTool) -> String {
    format!(
        "Times of benchmarks are those of {}. An iteration counts as contaminated for all benchmarks that ran in it.",
        tool.as_str()
    )
}

/// A row of each benchmark; `None` without any.
pub(super) fn table(series: &Series) -> Option<Table> {
    let rows: Vec<Row> = series.benchmarks().iter().map(row).collect();
    (!rows.is_empty()).then(|| Table {
        title: "Benchmarks".into(),
        columns: vec![
            Column::text("benchmark"),
            Column::number("median"),
            Column::number("from"),
            Column::number("to"),
            Column::number("if clean"),
            Column::text("contaminated"),
        ],
        rows,
        aside: "which --full shows",
        ..Table::default()
    })
}

fn row(of: &BenchmarkSummary) -> Row {
    let (mut text, mut tone) = (format!("{} of {}", of.contaminated, of.iterations), None);
    if of.unknown > 0 {
        text += &format!(", {} unknown", of.unknown);
        tone = Some(Tone::Warning);
    }
    if of.contaminated > 0 {
        tone = Some(Tone::Bad);
    }
    Row::from([
        visible(&of.name).into_owned().into(),
        of.median.to_string().into(),
        of.min.to_string().into(),
        of.max.to_string().into(),
        Cell::known(of.clean_median),
        Cell::toned(text, tone),
    ])
}

/// The change from the stored times, if there are any.
pub(super) fn change(series: &Series) -> Option<String> {
    let change = series.change()?;
    let BaselineChange {
        counted, by_guard, ..
    } = change;
    let tool = if by_guard { "guard" } else { "hyperfine" };
    let median = change.median.unwrap_or(Nanos::ZERO);
    let mut text = format!(
        "Against {counted} stored times of {tool} for `{}` (median {median}): {}.",
        visible(&change.command),
        changed(&change)
    );
    if !by_guard {
        text += " hyperfine measured without following, so this contains the cost of following.";
    }
    Some(text)
}

fn changed(change: &BaselineChange) -> String {
    let (Some(fraction), Some(interval)) = (change.change_fraction, change.change) else {
        return "no change is known, because a side has fewer than two times or a time of zero"
            .into();
    };
    let longer = |share: f64| match share < 0.0 {
        true => format!("{} shorter", percent(-share)),
        false => format!("{} longer", percent(share)),
    };
    let range = format!(
        "{} to {} at {}",
        longer(interval.low),
        longer(interval.high),
        percent(interval.level)
    );
    match interval.low <= 0.0 && interval.high >= 0.0 {
        true => format!("no change is shown ({range})"),
        false => format!("{} on average ({range})", longer(fraction)),
    }
}
