//! Charts as files: SVG that is written here, and PNG of it where the build has `png`.
//!
//! The SVG is our own and not a plotting library's: the same images stand inside pages, where their colours
//! are the reader's (light, dark, paper) and so must be classes, and where names that a stranger gave must be
//! text; the axes to the nines and the heat map would be ours anyway.

mod culprits;
mod histograms;
mod offsets;
mod outliers;
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

/// Which chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChartKind {
    /// Percentiles to the nines, a line a label.
    Percentiles,
    /// The longest stall of each moment.
    Series,
    /// Every stall a point.
    Outliers,
    /// Stolen time by culprit.
    Culprits,
    /// The pipeline's histograms.
    Histograms,
    /// When within a second stalls begin.
    Offsets,
}

impl ChartKind {
    /// All of them.
    pub const ALL: [ChartKind; 6] = [
        ChartKind::Percentiles,
        ChartKind::Series,
        ChartKind::Outliers,
        ChartKind::Culprits,
        ChartKind::Histograms,
        ChartKind::Offsets,
    ];

    /// Its word on the command line.
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

/// Why there is no chart.
#[derive(Debug, Error)]
pub enum ChartError {
    /// The run has nothing to show in it.
    #[error("no chart of {chart}: {why}")]
    Nothing {
        /// Which.
        chart: ChartKind,
        /// Why.
        why: String,
    },
    /// A run measured something else than the first.
    #[error("run {label} has not measured {what}, as the first one has: compare runs of one kind")]
    NotAlike {
        /// Which run.
        label: String,
        /// What.
        what: &'static str,
    },
    /// A chart could not be made into pixels.
    #[error("the chart cannot be made into a PNG: {0}")]
    Pixels(String),
}

/// The chart of a run, or of several beside one another on the same scales, as SVG that stands alone: colours for white
/// paper, its font included.
///
/// # Errors
/// The runs have nothing to show in it.
pub fn svg(kind: ChartKind, runs: &[&Drawn]) -> Result<String, ChartError> {
    Ok(drawn(kind, runs, runs, theme::WIDTH)?.finish(&theme::standalone(), &title(kind, runs)))
}

/// The chart as SVG within a page, whose style it needs, beside those of other runs: its scales and colours are
/// theirs, too.
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

/// The chart as PNG, twice as large as its SVG says.
///
/// # Errors
/// As [`svg`].
#[cfg(feature = "png")]
pub fn png(kind: ChartKind, runs: &[&Drawn]) -> Result<Vec<u8>, ChartError> {
    png::render(&svg(kind, runs)?)
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
    // Which of them has nothing to show is to be said.
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
