//! Charts as files: SVG, and PNG rendered from it if the build has `png`.
//!
//! The SVG is written here, without a plotting library: pages contain the same images, where the colours follow the
//! reader's theme (light, dark, paper) and so must be classes, and where untrusted names must be text. The nines axes
//! and the heat map would be custom code anyway.

mod culprits;
mod histograms;
mod offsets;
mod outliers;
#[cfg(feature = "png")]
mod outlines;
mod percentiles;
mod plot;
#[cfg(feature = "png")]
mod png;
mod scale;
mod shared;
pub(crate) mod shares;
mod svg;
pub(crate) mod theme;
pub(crate) mod words;

pub(crate) use percentiles::curves as percentile_curves;
pub(crate) use shared::of_its_time;
pub(crate) use svg::escaped;

use crate::drawn::Drawn;
use shared::Shared;
use std::fmt;
use svg::Svg;
use thiserror::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChartKind {
    /// Percentiles on the nines scale, one line for each label.
    Percentiles,
    /// The longest stall of each moment.
    Series,
    /// Every stall as a point.
    Outliers,
    /// Stolen time by culprit.
    Culprits,
    Histograms,
    /// The offsets of stalls within a second.
    Offsets,
}

impl ChartKind {
    pub const ALL: [ChartKind; 6] = [
        ChartKind::Percentiles,
        ChartKind::Series,
        ChartKind::Outliers,
        ChartKind::Culprits,
        ChartKind::Histograms,
        ChartKind::Offsets,
    ];

    /// The word on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ChartKind::Percentiles => "percentiles",
            ChartKind::Series => "series",
            ChartKind::Outliers => "outliers",
            ChartKind::Culprits => "culprits",
            ChartKind::Histograms => "histograms",
            ChartKind::Offsets => "offsets",
        }
    }
}

impl fmt::Display for ChartKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why a chart cannot be made.
#[derive(Debug, Error)]
pub enum ChartError {
    /// The run has no data for the chart.
    #[error("no chart of {chart}: {why}")]
    Nothing { chart: ChartKind, why: String },
    /// A run measured something different from the first.
    #[error("run {label} has not measured {what}, as the first one has: compare runs of one kind")]
    NotAlike { label: String, what: &'static str },
    /// The conversion to pixels failed.
    #[error("the chart cannot be made into a PNG: {0}")]
    Pixels(String),
}

/// The chart of a run, or of several side by side on the same scales, as a stand-alone SVG: colours for white paper,
/// embedded font.
///
/// # Errors
/// The runs have no data for the chart.
pub fn svg(kind: ChartKind, runs: &[&Drawn]) -> Result<String, ChartError> {
    Ok(drawn(kind, runs, runs, theme::WIDTH)?.finish(&theme::standalone(), &title(kind, runs)))
}

/// The chart as SVG inside a page, which supplies the style, beside those of other runs: scales and colours are shared.
pub(crate) fn inline(
    kind: ChartKind,
    runs: &[&Drawn],
    beside: &[&Drawn],
) -> Result<String, ChartError> {
    let width = if beside.len() > runs.len() {
        theme::NARROW
    } else {
        theme::WIDTH
    };
    Ok(drawn(kind, runs, beside, width)?.finish("", &title(kind, runs)))
}

/// The chart as PNG, at twice the size of its SVG.
///
/// # Errors
/// As [`svg`].
#[cfg(feature = "png")]
pub fn png(kind: ChartKind, runs: &[&Drawn]) -> Result<Vec<u8>, ChartError> {
    png::render(drawn(kind, runs, runs, theme::WIDTH)?, &title(kind, runs))
}

fn title(kind: ChartKind, runs: &[&Drawn]) -> String {
    format!("{kind}: {}", words::subtitle(runs))
}

fn drawn(
    kind: ChartKind,
    runs: &[&Drawn],
    beside: &[&Drawn],
    width: f64,
) -> Result<Svg, ChartError> {
    if kind == ChartKind::Percentiles {
        return percentiles::draw(runs);
    }
    let shared = Shared::of(beside, width);
    if let [run] = runs {
        return of_one(kind, run, &shared);
    }
    // The error names the run without data.
    let named = |run: &&Drawn| {
        of_one(kind, run, &shared).map_err(|error| match error {
            ChartError::Nothing { chart, why } => {
                let label = crate::style::fit(&run.summary.run.label, 32);
                ChartError::Nothing {
                    chart,
                    why: format!("{label}: {why}"),
                }
            }
            other => other,
        })
    };
    Ok(Svg::stacked(
        runs.iter().map(named).collect::<Result<_, _>>()?,
    ))
}

fn of_one(kind: ChartKind, run: &Drawn, shared: &Shared) -> Result<Svg, ChartError> {
    match kind {
        ChartKind::Percentiles => percentiles::draw(&[run]),
        ChartKind::Series => outliers::series(run, shared),
        ChartKind::Outliers => outliers::scatter(run, shared),
        ChartKind::Culprits => culprits::draw(run, shared),
        ChartKind::Histograms => histograms::draw(run, shared),
        ChartKind::Offsets => offsets::draw(run, shared),
    }
}
