//! The report of a series: its headline, a row of each iteration, and what to do next.

use super::{benchmarks, words};
use crate::number::percent_cell;
use crate::report::{Cell, Column, Report, Row, Table};
use crate::style::{Style, Tone, fit};
use jitterscope_analyze::guard::{Contamination, Iteration, Series};
use jitterscope_model::PutInOrder;

/// The text of a series on one screen, or on as many lines as it takes if `full`. `program`: the program's command line
/// that finds the runs.
#[must_use]
pub fn text(series: &Series, program: &str, full: bool, style: Style) -> String {
    let mut all = Report::default();
    let title = format!("`{}`", words::command(series));
    all.line(&fit(&title, style.columns()));
    all.append(report(series));
    if let Some(worst) = series.worst() {
        let text = format!(
            "Longest stall where most was lost: `{program} report {} --worst 1`",
            worst.run
        );
        all.sentence(None, text);
    }
    match full {
        true => all.terminal(style),
        false => all.screen(style),
    }
}

/// The series as Markdown, for the summary page of a build.
#[must_use]
pub fn markdown(series: &Series) -> String {
    report(series).markdown(&words::command(series))
}

fn report(series: &Series) -> Report {
    let mut report = Report::default();
    let headline = series.headline();
    report.sentence(Tone::Strong, words::times(series, &headline));
    let tone = match series.outcome() {
        Contamination::Clean => Tone::Good,
        Contamination::Contaminated => Tone::Bad,
        Contamination::Unknown => Tone::Warning,
    };
    report.sentence(tone, words::disturbed(series, &headline));
    let more = [
        (Some(Tone::Warning), words::ended(series)),
        (None, words::waits(series)),
        (None, benchmarks::change(series)),
        (None, words::disturbed_by_us(series)),
        (Some(Tone::Dim), words::own(series)),
    ];
    for (tone, text) in more {
        if let Some(text) = text {
            report.sentence(tone, text);
        }
    }
    if !series.iterations.is_empty() {
        report.table(table(series));
    }
    if let Some((tool, table)) = series.tool.zip(benchmarks::table(series)) {
        report.table(table);
        report.sentence(Tone::Dim, benchmarks::note(tool));
    }
    let unsure = series.iterations.iter().enumerate();
    let unsure = unsure.filter(|(_, one)| !one.unsure.is_empty());
    for (nth, (at, one)) in unsure.enumerate() {
        let text = format!("Iteration {}: {}.", at + 1, words::all_unsure(one));
        // A screen shows one reason in any case.
        match nth {
            0 => report.sentence(Tone::Warning, text),
            _ => report.optional(Tone::Warning, text),
        }
    }
    report.sentence(Tone::Dim, words::COST);
    report
}

fn table(series: &Series) -> Table {
    let waits = series.iterations.iter().any(|one| one.made.wait.is_some());
    let rows = series.iterations.iter().enumerate();
    let mut rows: Vec<Row> = rows.map(|(at, one)| row(at, one, waits)).collect();
    for (rank, at) in by_weight(series).into_iter().enumerate() {
        rows[at].rank = rank;
    }
    let mut columns = vec![Column::number("#")];
    columns.extend(waits.then(|| Column::number("wait")));
    columns.extend([
        Column::number("time"),
        Column::number("lost"),
        Column::number("share"),
        Column::text("verdict"),
        Column::text("most to"),
        Column::text("run"),
    ]);
    Table {
        title: "Iterations".into(),
        columns,
        rows,
        aside: "which --full shows",
        ..Table::default()
    }
}

/// The iterations: the contaminated ones first, then the unknown ones, then those that lost most.
fn by_weight(series: &Series) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..series.iterations.len()).collect();
    let weight = |at: &usize| {
        let of = &series.iterations[*at];
        let kind = match of.contamination {
            Contamination::Contaminated => 0,
            Contamination::Unknown => 1,
            Contamination::Clean => 2,
        };
        (kind, -of.stolen.share())
    };
    numbers.order_by(|a, b| {
        let (a, b) = (weight(a), weight(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    numbers
}

fn row(at: usize, iteration: &Iteration, waits: bool) -> Row {
    let tone = match iteration.contamination {
        Contamination::Clean => None,
        Contamination::Contaminated => Some(Tone::Bad),
        Contamination::Unknown => Some(Tone::Warning),
    };
    let time = match iteration.is_whole() {
        true => iteration.time.to_string(),
        false => "ended".into(),
    };
    let mut cells: Vec<Cell> = vec![words::number(at, iteration).into()];
    cells.extend(waits.then(|| words::wait(iteration).into()));
    cells.extend([
        time.into(),
        iteration.stolen.lost().to_string().into(),
        percent_cell(iteration.stolen.share()).into(),
        Cell::toned(words::verdict(iteration), tone),
        words::culprit_name(iteration).into(),
        iteration.run.as_str().into(),
    ]);
    Row::from(cells)
}
