//! Charts, each with a table.

use super::markup::Markup;
use crate::chart::{self, ChartKind, of_its_time, words};
use crate::drawn::Drawn;
use crate::number::{count, moment, percent};
use crate::report::{Cell, Column, Links, Row, Table};
use jitterscope_analyze::picture::{Curve, DrawnCulprit};
use jitterscope_model::{Nanos, PutInOrder};
use std::collections::BTreeMap;

/// The percentiles in the table.
const LEVELS: [(&str, f64); 8] = [
    ("50 %", 0.5),
    ("90 %", 0.9),
    ("99 %", 0.99),
    ("99.9 %", 0.999),
    ("99.99 %", 0.9999),
    ("99.999 %", 0.99999),
    ("99.9999 %", 0.999_999),
    ("longest", 1.0),
];
/// The number of rows in the table of offsets.
const OFFSETS: usize = 12;

/// Adds a chart; nothing if the run has no data for it.
pub(super) fn figure(body: &mut Markup, run: &Drawn, kind: ChartKind) -> bool {
    match chart::inline(kind, &[run], &[run]) {
        Ok(svg) => {
            body.chart(Some(kind.as_str()), &svg);
            true
        }
        Err(error) => {
            body.note(&error.to_string());
            false
        }
    }
}

pub(super) fn series(body: &mut Markup, run: &Drawn) {
    body.section("series", "Over time");
    if figure(body, run, ChartKind::Series) {
        series_table(body, run);
    }
    body.end();
}

/// Adds a table that opens on a click.
fn as_a_table(body: &mut Markup, title: String, columns: Vec<Column>, rows: Vec<Row>) {
    let table = Table {
        title,
        columns,
        rows,
        ..Table::default()
    };
    body.details("As a table", |body| table.html(body, &Links::default()));
}

pub(super) fn series_table(body: &mut Markup, run: &Drawn) {
    let history = &run.summary.history;
    let row = |(at, (max, stolen)): (usize, (&Nanos, &Nanos))| {
        let from = Nanos(history.step_ns.0.saturating_mul(at as u64));
        Row::from([moment(from), max.to_string(), stolen.to_string()].map(Cell::from))
    };
    let steps = history.max_ns.iter().zip(&history.stolen_ns).enumerate();
    let longest = format!("longest {}", words::noun(run).one);
    let heads = ["from", &longest, "stolen in all"].map(Column::number);
    let title = format!("Steps of {}", history.step_ns);
    as_a_table(body, title, heads.into(), steps.map(row).collect());
}

pub(super) fn percentiles(body: &mut Markup, run: &Drawn) {
    body.section("percentiles", "Percentiles");
    if figure(body, run, ChartKind::Percentiles) {
        let curves = run
            .picture
            .curves
            .iter()
            .map(|curve| (words::curve(run, curve.of), curve));
        percentiles_table(body, curves.collect());
    }
    body.end();
}

/// The curves by name, each up to its supported percentile.
pub(super) fn percentiles_table(body: &mut Markup, curves: Vec<(String, &Curve)>) {
    let of_moments = curves.iter().any(|(_, curve)| curve.of.is_of_moments());
    let all = if of_moments { "over" } else { "count" };
    let mut columns = vec![Column::text("of"), Column::number(all)];
    columns.extend(LEVELS.map(|(name, _)| Column::number(name)));
    let row = |(name, curve): (String, &Curve)| {
        let all = match curve.of.is_of_moments() {
            true => Nanos(curve.count).to_string(),
            false => count(curve.count),
        };
        let mut row: Vec<Cell> = vec![name.into(), all.into()];
        row.extend(LEVELS.map(|(_, share)| {
            let supported = share >= 1.0 || curve.supports(share);
            Cell::known(supported.then(|| curve.quantile(share)))
        }));
        Row::from(row)
    };
    let table = Table {
        title: "Percentiles".into(),
        columns,
        rows: curves.into_iter().map(row).collect(),
        ..Table::default()
    };
    table.html(body, &Links::default());
}

pub(super) fn outliers(body: &mut Markup, run: &Drawn) {
    body.section("outliers", "Outliers");
    if figure(body, run, ChartKind::Outliers) {
        outliers_table(body, run);
    }
    body.end();
}

pub(super) fn outliers_table(body: &mut Markup, run: &Drawn) {
    let mut decades: BTreeMap<u32, (u64, Nanos)> = BTreeMap::new();
    for stall in &run.picture.stalls {
        let decade = decades.entry(stall.length.0.max(1).ilog10()).or_default();
        decade.0 += 1;
        decade.1 += stall.length;
    }
    let row = |(decade, (n, sum)): (u32, (u64, Nanos))| {
        let from = Nanos(10u64.saturating_pow(decade));
        Row::from([from.to_string(), count(n), sum.to_string()].map(Cell::from))
    };
    let noun = words::noun(run);
    let heads = ["from", noun.many, "their time"].map(Column::number);
    let left_out = run.picture.stalls_read - run.picture.stalls.len() as u64;
    let title = match left_out {
        0 => format!("{} by length", noun.heading),
        n => format!(
            "{} by length, without the {} that are not drawn",
            noun.heading,
            count(n)
        ),
    };
    as_a_table(
        body,
        title,
        heads.into(),
        decades.into_iter().map(row).collect(),
    );
}

/// The time by culprit, as in the bars side by side.
pub(super) fn culprits_table(body: &mut Markup, run: &Drawn) {
    let row = |(culprit, name): (&DrawnCulprit, String)| {
        Row::from([
            name.into(),
            percent(of_its_time(run, culprit.total.0)).into(),
            culprit.total.to_string().into(),
            count(culprit.count).into(),
        ])
    };
    let share = format!("of {}", words::shares_of(run));
    let heads = [share.as_str(), "total", words::noun(run).many];
    let columns = [Column::text("culprit")].into_iter();
    let columns = columns.chain(Column::numbers(heads)).collect();
    let named = run.picture.culprits.iter().zip(words::culprits(run, 96));
    let stole = named.filter(|(culprit, _)| culprit.total.0 > 0);
    let rows = stole.map(row).collect();
    as_a_table(body, "Culprits, by their time".into(), columns, rows);
}

pub(super) fn offsets(body: &mut Markup, run: &Drawn) {
    body.section("offsets", "Offsets");
    if figure(body, run, ChartKind::Offsets) {
        let map = &run.picture.offsets;
        body.note(
            "What comes once in each unit of time, or several times at even distances, is a line across.",
        );
        let of_row =
            |row: usize| (0..map.columns).map(move |column| map.counts[column * map.rows + row]);
        let mut rows: Vec<(u64, usize)> =
            (0..map.rows).map(|row| (of_row(row).sum(), row)).collect();
        rows.order_by_key(|(n, row)| (std::cmp::Reverse(*n), *row));
        let step = map.unit.0 / map.rows as u64;
        let row = |(n, row): &(u64, usize)| {
            let columns = of_row(*row).filter(|n| *n > 0).count();
            let offset = Nanos(step * *row as u64).to_string();
            Row::from([offset, count(*n), count(columns as u64)].map(Cell::from))
        };
        let fullest = rows.iter().take(OFFSETS).filter(|(n, _)| *n > 0);
        let many = words::noun(run).many;
        let heads = ["offset from", many, "columns with any"].map(Column::number);
        let title = format!(
            "The fullest offsets, steps of {}, {} columns",
            Nanos(step),
            map.columns
        );
        as_a_table(body, title, heads.into(), fullest.map(row).collect());
    }
    body.end();
}
