//! The percentile chart: nines across, lengths up, one line for each label.

use super::plot::{self, Area, Axis, Sample};
use super::scale::{self, Scale};
use super::svg::{Px, Svg};
use super::theme::{SERIES, WIDTH};
use super::{ChartError, ChartKind, words};
use crate::drawn::Drawn;
use jitterscope_analyze::picture::{Curve, CurveOf};
use std::fmt::Write;

const HEIGHT: f64 = 520.0;

/// All curves of one run; for several runs, the first curve that all have.
pub(super) fn draw(runs: &[&Drawn]) -> Result<Svg, ChartError> {
    let curves = curves(runs)?;
    let lines: Vec<Vec<(f64, f64)>> = curves.iter().map(|(_, curve)| curve.nines()).collect();
    let longest: Vec<(f64, f64)> = curves.iter().map(|(_, curve)| curve.longest()).collect();
    let mut svg = Svg::new(WIDTH, HEIGHT);
    let first = curves[0].1.of;
    let what = match runs {
        [run] => words::measured_of(run, first),
        _ => words::compared(first).into(),
    };
    plot::heading(
        &mut svg,
        HEIGHT,
        &format!("Percentiles of {what}"),
        &words::subtitle(runs),
    );
    let names: Vec<String> = curves.iter().map(|(name, _)| name.clone()).collect();
    let end = plot::key(&mut svg, &names, Sample::Line);
    let area = Area {
        left: 84.0,
        top: end + 18.0,
        right: WIDTH - 24.0,
        bottom: HEIGHT - 50.0,
    };
    let x = Axis {
        scale: Scale::Nines(
            longest
                .iter()
                .map(|(x, _)| *x)
                .fold(1.0, f64::max)
                .min(12.0),
        ),
        title: "percentile (lines end where ten lie above; marks: the longest)",
        name: &|at| format!("{} %", scale::nines(at as usize)),
    };
    let y = Axis {
        scale: Scale::decades(lines.iter().flatten().chain(&longest).map(|(_, y)| *y)),
        title: "time, log scale",
        name: &scale::length,
    };
    plot::axes(&mut svg, area, &x, &y);
    for (series, line) in lines.iter().enumerate() {
        let path =
            steps(line.iter().map(|(nines, value)| {
                [area.x(x.scale.share(*nines)), area.y(y.scale.share(*value))]
            }));
        svg.path(&plot::line_class(series), &path);
        let (nines, value) = longest[series];
        let at = [area.x(x.scale.share(nines)), area.y(y.scale.share(value))];
        svg.path(
            &format!("mark s{}", series % SERIES),
            &plot::mark(series, at[0], at[1]),
        );
    }
    Ok(svg)
}

/// A step line through points: each value holds until the next, because no value in between was measured.
fn steps(places: impl Iterator<Item = [f64; 2]>) -> String {
    let mut path = String::new();
    let mut drawn: Option<[f64; 2]> = None;
    let mut places = places.peekable();
    while let Some([x, y]) = places.next() {
        let Some([dx, dy]) = drawn else {
            let _ = write!(path, "M{} {}", Px(x), Px(y));
            drawn = Some([x, y]);
            continue;
        };
        // Points within a pixel are merged; the last stays.
        let near = (dx - x).abs() < 1.0 && (dy - y).abs() < 1.0;
        if !near || places.peek().is_none() {
            let _ = write!(path, "H{}V{}", Px(x), Px(y));
            drawn = Some([x, y]);
        }
    }
    path
}

/// The lines of the chart, by name.
pub(crate) fn curves<'r>(runs: &[&'r Drawn]) -> Result<Vec<(String, &'r Curve)>, ChartError> {
    let none = || ChartError::Nothing {
        chart: ChartKind::Percentiles,
        why: "nothing was measured".into(),
    };
    let (first, others) = runs.split_first().ok_or_else(none)?;
    let own = first
        .picture
        .curves
        .iter()
        .filter(|curve| words::is_shown(curve.of));
    if others.is_empty() {
        let all: Vec<_> = own
            .take(SERIES)
            .map(|curve| (words::curve(first, curve.of), curve))
            .collect();
        return if all.is_empty() { Err(none()) } else { Ok(all) };
    }
    // Runs of several CPUs are compared by all CPUs together, pipelines by the times without coordinated omission,
    // others by their first curve.
    let all: Vec<&Curve> = own.collect();
    let intended = all
        .iter()
        .find(|curve| matches!(curve.of, CurveOf::FromIntended(_)));
    let lead = intended.or(all.first()).ok_or_else(none)?.of;
    let labels = words::labels(runs);
    let same = |(run, label): (&&'r Drawn, String)| {
        let curves = &run.picture.curves;
        let alike = || {
            curves
                .iter()
                .find(|curve| words::compared(curve.of) == words::compared(lead))
        };
        let Some(curve) = curves.iter().find(|curve| curve.of == lead).or_else(alike) else {
            return Err(ChartError::NotAlike {
                label,
                what: words::compared(lead),
            });
        };
        let messages = matches!(curve.of, CurveOf::FromIntended(_) | CurveOf::Transit(_));
        let name = if messages {
            format!("{label}: {}", words::curve(run, curve.of))
        } else {
            label
        };
        Ok((name, curve))
    };
    runs.iter().zip(labels).take(SERIES).map(same).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_holds_until_the_next_one() {
        let places = [[0.0, 100.0], [50.0, 80.0], [50.4, 79.8], [90.0, 79.8]];
        assert_eq!(steps(places.into_iter()), "M0 100H50V80H90V79.8");
    }
}
