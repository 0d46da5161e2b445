//! Tables of figures, and the sentences about the totals.

use super::report::{letter, tone, verdict_cell};
use super::words::{change, figure, figure_name, headline, interval, levels, next_to_maximum};
use crate::number;
use crate::report::{Cell, Column, Report, Row, Table};
use crate::style::Tone;
use jitterscope_analyze::compare::{
    Against, Comparison, Diff, FigureKind, FigureRow, Scale, SideSummary, middle,
};
use jitterscope_model::Nanos;

/// The mark of a percentile that too few values lie above.
const NEXT_TO_MAXIMUM: &str = " ^";
/// Beyond this number of values of one side, only their middle is shown.
const FEW: usize = 3;

/// The middles of more than two sides.
pub(super) fn all_sides(diff: &Diff) -> Table {
    let first = diff.against.first();
    let row = |row: &FigureRow| {
        let mut cells: Vec<Cell> = vec![figure_name(row.kind).into()];
        cells.push(figure(of_side(row.kind, &row.first), row.unit).into());
        for against in &diff.against {
            let same = against.figures.iter().find(|other| other.kind == row.kind);
            let value = same.and_then(|other| of_side(row.kind, &other.second));
            cells.push(figure(value, row.unit).into());
        }
        Row {
            cells,
            ..Row::default()
        }
    };
    let sides = (0..diff.sides.len()).map(|at| Column::number(letter(at)));
    Table {
        title: "All sides".into(),
        columns: std::iter::once(Column::text("figure"))
            .chain(sides)
            .collect(),
        rows: first
            .map_or(&[][..], |against| &against.figures)
            .iter()
            .map(row)
            .collect(),
        ..Table::default()
    }
}

/// What the totals say, and all figures.
pub(super) fn figures(
    report: &mut Report,
    against: &Against,
    names: &[String; 2],
    sides: [&SideSummary; 2],
) {
    let run = length(sides[0], sides[1]);
    for row in against.figures.iter().filter(|row| row.is_total) {
        let Some([observed, said]) = headline(row, names, sides, run) else {
            continue;
        };
        report.sentence(Tone::Strong, observed);
        let verdict = row.comparison.as_ref().map(|c| c.verdict);
        report.sentence(verdict.map_or(Tone::Dim, tone), said);
    }
    if against.figures.is_empty() {
        report.sentence(None, "Runs of this probe have no figures.");
        return;
    }
    let row = |row: &FigureRow| figure_row(row, names, sides);
    report.table(Table {
        title: "Figures: less is better everywhere".into(),
        columns: vec![
            Column::text("figure"),
            Column::number(&names[0]),
            Column::number(&names[1]),
            Column::number("change"),
            Column::number("interval"),
            Column::number("margin").of_rank(1),
            Column::number("noise").of_rank(2),
            Column::text("verdict"),
        ],
        rows: against.figures.iter().map(row).collect(),
        ..Table::default()
    });
    if let Some(level) = levels(&against.figures) {
        let text = format!(
            "interval: of the change, at {level}; margin: what counts as no difference; noise: the difference that two \
             samples of one setting may show. Less is better everywhere. Figures without a verdict are shown only."
        );
        report.sentence(Tone::Dim, text);
    }
    if let Some(text) = next_to_maximum(&against.figures, run) {
        report.sentence(Tone::Dim, format!("{} {text}", NEXT_TO_MAXIMUM.trim()));
    }
}

fn figure_row(row: &FigureRow, names: &[String; 2], sides: [&SideSummary; 2]) -> Row {
    let compared = row.comparison.as_ref();
    let mark = row.supported_from_ns.map_or("", |_| NEXT_TO_MAXIMUM);
    let by = |of: fn(&Comparison) -> Option<f64>| {
        let text = compared.and_then(|c| Some(change(of(c)?, c.scale, row.unit)));
        text.unwrap_or_else(|| "-".into())
    };
    let unsigned = |text: String| text.trim_start_matches('+').to_owned();
    let side = |values: &[Option<f64>]| figure(of_side(row.kind, values), row.unit);
    let shown = compared.map_or_else(|| "-".into(), |c| interval(c.interval, c.scale, row.unit));
    let verdict = match compared {
        Some(c) => verdict_cell(c.verdict),
        None => lacking(row, names).into(),
    };
    Row {
        remarks: remarks(row, sides),
        ..Row::from([
            Cell::toned(
                format!("{}{mark}", figure_name(row.kind)),
                row.is_total.then_some(Tone::Strong),
            ),
            side(&row.first).into(),
            side(&row.second).into(),
            by(|c| c.change).into(),
            shown.into(),
            unsigned(by(|c| (c.margin > 0.0).then_some(c.margin))).into(),
            unsigned(by(|c| c.noise_floor)).into(),
            verdict,
        ])
    }
}

/// The side without this figure; empty if both or neither have it.
fn lacking(row: &FigureRow, names: &[String; 2]) -> String {
    let has = |values: &[Option<f64>]| values.iter().any(Option::is_some);
    match (has(&row.first), has(&row.second)) {
        (true, false) => format!("{} has no such figure", names[1]),
        (false, true) => format!("{} has no such figure", names[0]),
        _ => String::new(),
    }
}

fn remarks(row: &FigureRow, sides: [&SideSummary; 2]) -> Vec<String> {
    let mut remarks = Vec::new();
    // The longest value grows with the time of observation.
    if row.kind == FigureKind::Worst && row.comparison.is_none() {
        let [a, b] = sides.map(|side| number::span(side.measured_ns));
        remarks.push(format!("in {a} and {b}"));
    }
    let most = row.first.len().max(row.second.len());
    if row.is_total && (2..=FEW).contains(&most) {
        let all = |values: &[Option<f64>]| {
            let each = values.iter().map(|value| figure(*value, row.unit));
            each.collect::<Vec<_>>().join(", ")
        };
        remarks.push(format!("runs: {}; {}", all(&row.first), all(&row.second)));
    }
    if let Some([a, b]) = row
        .comparison
        .as_ref()
        .and_then(|c| c.not_seen_below_per_sec)
    {
        remarks.push(format!(
            "not seen: below {}/s and {}/s (3 / time)",
            number::rate(a),
            number::rate(b)
        ));
    }
    remarks
}

/// A side's value of a figure: the worst of its runs, or their middle as in the comparison. `None` if a run lacks it.
fn of_side(kind: FigureKind, values: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = values.iter().copied().flatten().collect();
    match kind {
        FigureKind::Worst => known.into_iter().reduce(f64::max),
        _ if known.is_empty() || known.len() < values.len() => None,
        _ => Some(middle(Scale::of(known.iter().copied()), &known)),
    }
}

/// The length of a run of these sides.
fn length(first: &SideSummary, second: &SideSummary) -> Nanos {
    let runs = first.runs.iter().chain(&second.runs);
    let mut all: Vec<Nanos> = runs.map(|run| run.duration_ns).collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}
