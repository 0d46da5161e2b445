//! Charts, each with a table.

use super::markup::{Cell, Head, Markup};
use crate::chart::{self, ChartKind, of_its_time, words};
use crate::drawn::Drawn;
use crate::number::{count, moment, percent};
use jitterscope_analyze::picture::{Curve, DrawnCulprit};
use jitterscope_model::Nanos;
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

pub(super) fn series_table(body: &mut Markup, run: &Drawn) {
    body.details("As a table", |body| {
        let history = &run.summary.history;
        let row = |(at, (max, stolen)): (usize, (&Nanos, &Nanos))| {
            let from = Nanos(history.step_ns.0.saturating_mul(at as u64));
            vec![
                Cell::Number(moment(from)),
                Cell::Number(max.to_string()),
                Cell::Number(stolen.to_string()),
            ]
        };
        let rows = history
            .max_ns
            .iter()
            .zip(&history.stolen_ns)
            .enumerate()
            .map(row)
            .collect();
        let longest = format!("longest {}", words::noun(run).one);
        let heads = [
            Head::Number("from"),
            Head::Number(&longest),
            Head::Number("stolen in all"),
        ];
        body.table(&format!("Steps of {}", history.step_ns), &heads, rows);
    });
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
    let mut heads = vec![Head::Text("of"), Head::Number(all)];
    heads.extend(LEVELS.map(|(name, _)| Head::Number(name)));
    let row = |(name, curve): (String, &Curve)| {
        let all = match curve.of.is_of_moments() {
            true => Nanos(curve.count).to_string(),
            false => count(curve.count),
        };
        let mut row = vec![Cell::Text(name), Cell::Number(all)];
        row.extend(LEVELS.map(|(_, share)| {
            Cell::Number(if share >= 1.0 || curve.supports(share) {
                curve.quantile(share).to_string()
            } else {
                "\u{2013}".into()
            })
        }));
        row
    };
    body.table("Percentiles", &heads, curves.into_iter().map(row).collect());
}

pub(super) fn outliers(body: &mut Markup, run: &Drawn) {
    body.section("outliers", "Outliers");
    if figure(body, run, ChartKind::Outliers) {
        outliers_table(body, run);
    }
    body.end();
}

pub(super) fn outliers_table(body: &mut Markup, run: &Drawn) {
    body.details("As a table", |body| {
        let mut decades: BTreeMap<u32, (u64, Nanos)> = BTreeMap::new();
        for stall in &run.picture.stalls {
            let decade = decades.entry(stall.length.0.max(1).ilog10()).or_default();
            decade.0 += 1;
            decade.1 += stall.length;
        }
        let row = |(decade, (n, sum)): (u32, (u64, Nanos))| {
            vec![
                Cell::Number(Nanos(10u64.saturating_pow(decade)).to_string()),
                Cell::Number(count(n)),
                Cell::Number(sum.to_string()),
            ]
        };
        let noun = words::noun(run);
        let heads = [
            Head::Number("from"),
            Head::Number(noun.many),
            Head::Number("their time"),
        ];
        let left_out = run.picture.stalls_read - run.picture.stalls.len() as u64;
        let caption = match left_out {
            0 => format!("{} by length", noun.heading),
            n => format!(
                "{} by length, without the {} that are not drawn",
                noun.heading,
                count(n)
            ),
        };
        body.table(&caption, &heads, decades.into_iter().map(row).collect());
    });
}

/// The time by culprit, as in the bars side by side.
pub(super) fn culprits_table(body: &mut Markup, run: &Drawn) {
    body.details("As a table", |body| {
        let row = |(culprit, name): (&DrawnCulprit, String)| {
            vec![
                Cell::Text(name),
                Cell::Number(percent(of_its_time(run, culprit.total.0))),
                Cell::Number(culprit.total.to_string()),
                Cell::Number(count(culprit.count)),
            ]
        };
        let share = format!("of {}", words::shares_of(run));
        let heads = [
            Head::Text("culprit"),
            Head::Number(&share),
            Head::Number("total"),
            Head::Number(words::noun(run).many),
        ];
        let rows = {
            let named = run.picture.culprits.iter().zip(words::culprits(run, 96));
            named
                .filter(|(culprit, _)| culprit.total.0 > 0)
                .map(row)
                .collect()
        };
        body.table("Culprits, by their time", &heads, rows);
    });
}

pub(super) fn offsets(body: &mut Markup, run: &Drawn) {
    body.section("offsets", "Offsets");
    if figure(body, run, ChartKind::Offsets) {
        let map = &run.picture.offsets;
        body.note(
            "What comes once in each unit of time, or several times at even distances, is a line across.",
        );
        body.details("As a table", |body| {
            let of_row = |row: usize| {
                (0..map.columns).map(move |column| map.counts[column * map.rows + row])
            };
            let mut rows: Vec<(u64, usize)> =
                (0..map.rows).map(|row| (of_row(row).sum(), row)).collect();
            rows.sort_by_key(|(n, row)| (std::cmp::Reverse(*n), *row));
            let step = map.unit.0 / map.rows as u64;
            let row = |(n, row): &(u64, usize)| {
                vec![
                    Cell::Number(Nanos(step * *row as u64).to_string()),
                    Cell::Number(count(*n)),
                    Cell::Number(count(of_row(*row).filter(|n| *n > 0).count() as u64)),
                ]
            };
            let rows = rows
                .iter()
                .take(OFFSETS)
                .filter(|(n, _)| *n > 0)
                .map(row)
                .collect();
            let many = words::noun(run).many;
            let heads = [
                Head::Number("offset from"),
                Head::Number(many),
                Head::Number("columns with any"),
            ];
            let caption = format!(
                "The fullest offsets, steps of {}, {} columns",
                Nanos(step),
                map.columns
            );
            body.table(&caption, &heads, rows);
        });
    }
    body.end();
}
