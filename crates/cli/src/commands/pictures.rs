//! `report --chart`: a run's charts as files.

use crate::exit::UsageError;
use crate::output;
use crate::places::Places;
use crate::redact::Redact;
use clap::{Args, ValueEnum};
use jitterscope_analyze::periods::Effort;
use jitterscope_analyze::picture::MOST_STALLS;
use jitterscope_export::WholeFile;
use jitterscope_report::chart::{self, ChartError, ChartKind};
use jitterscope_report::{Drawn, Wanted, load_drawn};
use jitterscope_store::{RunReader, resolve};
use std::path::{Path, PathBuf};

/// Arguments of what is drawn of a run.
#[derive(Args, Debug)]
pub struct PictureArgs {
    /// Draw a chart, into the file of --out
    #[arg(long, value_name = "KIND", requires = "out", conflicts_with_all = ["json", "timeline", "reattribute", "full"])]
    pub chart: Option<Chart>,
    /// Where the chart goes: FILE.svg, or FILE.png where this build has it; - is standard output, as SVG
    #[arg(long, value_name = "FILE", requires = "chart")]
    pub out: Option<PathBuf>,
    /// Beside the run, a line of this one too; may be repeated (percentiles only)
    #[arg(long = "with", value_name = "RUN", requires = "chart")]
    pub with: Vec<String>,
}

/// Which chart.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Chart {
    /// Percentiles to the nines, a line a label
    Percentiles,
    /// The longest stall of each moment, by culprit
    Series,
    /// Every stall a point, by culprit
    Outliers,
    /// Stolen time by culprit
    Culprits,
    /// How many of a pipeline's messages took how long
    Histograms,
    /// When within each second stalls begin: what is periodic is a line
    Offsets,
}

impl From<Chart> for ChartKind {
    fn from(chart: Chart) -> ChartKind {
        match chart {
            Chart::Percentiles => ChartKind::Percentiles,
            Chart::Series => ChartKind::Series,
            Chart::Outliers => ChartKind::Outliers,
            Chart::Culprits => ChartKind::Culprits,
            Chart::Histograms => ChartKind::Histograms,
            Chart::Offsets => ChartKind::Offsets,
        }
    }
}

/// How a chart is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Svg,
    Png,
}

impl Format {
    fn of(path: &Path) -> Result<Format, UsageError> {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            _ if path == Path::new("-") => Ok(Format::Svg),
            Some("svg") => Ok(Format::Svg),
            Some("png") if cfg!(feature = "png") => Ok(Format::Png),
            Some("png") => Err(UsageError(
                "--out: this build writes no PNG; name a .svg file, or build with --features png".into(),
            )),
            _ => Err(UsageError(format!("--out {}: the name must end in .svg or .png", path.display()))),
        }
    }
}

/// Draws a chart of the run in a folder.
///
/// # Errors
/// A run cannot be read, has nothing to show in it, or the file cannot be written.
pub fn draw(
    chart: Chart,
    args: &PictureArgs,
    run: &Path,
    redact: Redact,
    places: &Places,
) -> anyhow::Result<()> {
    let out = args.out.as_deref().unwrap_or(Path::new("-"));
    let format = Format::of(out)?;
    // What cannot be written shows before a long run is read.
    let file = WholeFile::open(out)?;
    let mut folders = vec![run.to_path_buf()];
    for other in &args.with {
        folders.push(resolve(&places.runs()?, other)?);
    }
    let wanted = Wanted { worst: 1, effort: Effort::BRIEF, stalls: MOST_STALLS, redact: redact.on };
    let runs = folders
        .iter()
        .map(|folder| Ok(load_drawn(&RunReader::open(folder)?, wanted)?))
        .collect::<anyhow::Result<Vec<Drawn>>>()?;
    let runs: Vec<&Drawn> = runs.iter().collect();
    file.write(&image(chart.into(), format, &runs)?)?;
    if out != Path::new("-") {
        output::talk(format!("{}: {}", out.display(), ChartKind::from(chart)));
    }
    Ok(())
}

fn image(kind: ChartKind, format: Format, runs: &[&Drawn]) -> anyhow::Result<Vec<u8>> {
    let told = |error: ChartError| match error {
        // The run is what it is, and another chart of it may be had.
        ChartError::Nothing { .. } | ChartError::OneRun(_) | ChartError::NotAlike { .. } => {
            anyhow::Error::from(UsageError(error.to_string()))
        }
        ChartError::Pixels(_) => error.into(),
    };
    match format {
        Format::Svg => chart::svg(kind, runs).map(String::into_bytes).map_err(told),
        #[cfg(feature = "png")]
        Format::Png => chart::png(kind, runs).map_err(told),
        #[cfg(not(feature = "png"))]
        Format::Png => unreachable!("no such format in this build"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_says_the_format() {
        let of = |name: &str| Format::of(Path::new(name)).ok();
        assert_eq!([of("a.svg"), of("-"), of("a.SVG")], [Some(Format::Svg); 3]);
        assert_eq!([of("a"), of("a.jpg"), of("svg")], [None; 3]);
        assert_eq!(of("a.png"), cfg!(feature = "png").then_some(Format::Png));
    }

    #[test]
    fn every_chart_of_the_library_can_be_asked_for() {
        let asked: Vec<ChartKind> = Chart::value_variants().iter().map(|chart| (*chart).into()).collect();
        assert_eq!(asked, ChartKind::ALL);
        for chart in Chart::value_variants() {
            let word = chart.to_possible_value().map(|value| value.get_name().to_owned());
            assert_eq!(word.as_deref(), Some(ChartKind::from(*chart).as_str()));
        }
    }
}
