//! `report --chart` and `report --html`: a run's charts as files, and its page.

use super::scope::culprits_of;
use super::stall::redacted;
use crate::exit::UsageError;
use crate::output;
use crate::places::Places;
use crate::redact::Redact;
use clap::{Args, ValueEnum};
use jitterscope_analyze::Redactor;
use jitterscope_analyze::compare::{Diff, SideSummary};
use jitterscope_analyze::periods::Effort;
use jitterscope_analyze::picture::MOST_STALLS;
use jitterscope_export::WholeFile;
use jitterscope_model::{KnobFinding, PutInOrder, StallId};
use jitterscope_recording::{stall_timeline, stall_timelines};
use jitterscope_store::{RunReader, resolve};
use jitterscope_tune::catalogue::find;
use jitterscope_view::chart::{self, ChartError, ChartKind};
use jitterscope_view::html::{self, Frames, Gain, Setting};
use jitterscope_view::{Drawn, Wanted, load_drawn, load_drawn_with, load_stall};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Arguments of what is drawn of a run.
#[derive(Args, Debug)]
pub struct PictureArgs {
    /// Draw a chart, into the file of --out
    #[arg(long, value_name = "KIND", requires = "out", conflicts_with_all = ["json", "timeline", "reattribute", "full"])]
    pub chart: Option<Chart>,
    /// Write the run as one HTML file: for a colleague, to look at and to move in; - is standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["chart", "json", "timeline", "reattribute", "full"])]
    pub html: Option<PathBuf>,
    /// Where the chart goes: FILE.svg, or FILE.png where this build has it; - is standard output, as SVG
    #[arg(long, value_name = "FILE", requires = "chart")]
    pub out: Option<PathBuf>,
    /// Beside the run this one too, on the same scales; may be repeated
    #[arg(long = "with", value_name = "RUN", requires = "chart", add = crate::completion::runs())]
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

/// The format of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Svg,
    Png,
}

impl Format {
    fn of(path: &Path) -> Result<Format, UsageError> {
        let ending = path
            .extension()
            .map(|ending| ending.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            _ if path == Path::new("-") => Ok(Format::Svg),
            Some("svg") => Ok(Format::Svg),
            Some("png") if cfg!(feature = "png") => Ok(Format::Png),
            Some("png") => Err(UsageError(
                "--out: this build writes no PNG; name a .svg file, or build with --features png"
                    .into(),
            )),
            _ => Err(UsageError(format!(
                "--out {}: the name must end in .svg or .png",
                path.display()
            ))),
        }
    }
}

/// Draws a chart of the run in a folder.
///
/// # Errors
/// A run cannot be read, has no data for the chart, or the file cannot be written.
pub fn draw(
    chart: Chart,
    args: &PictureArgs,
    run: &Path,
    redact: Redact,
    places: &Places,
) -> anyhow::Result<()> {
    let mut folders = vec![run.to_path_buf()];
    for other in &args.with {
        folders.push(resolve(&places.runs()?, other)?);
    }
    let mut redactor = redact.on.then(Redactor::new);
    draw_runs(
        chart,
        args.out.as_deref().unwrap_or(Path::new("-")),
        &folders,
        &mut redactor,
    )
}

/// Draws a chart of the runs in folders.
///
/// # Errors
/// As [`draw`].
pub fn draw_runs(
    chart: Chart,
    out: &Path,
    folders: &[PathBuf],
    redactor: &mut Option<Redactor>,
) -> anyhow::Result<()> {
    let format = Format::of(out)?;
    // An unwritable file shows before a long run is read.
    let file = WholeFile::open(out)?;
    let runs = folders
        .iter()
        .map(|folder| drawn(folder, MOST_STALLS, redactor))
        .collect::<anyhow::Result<Vec<Drawn>>>()?;
    let runs: Vec<&Drawn> = runs.iter().collect();
    file.write(&image(chart.into(), format, &runs)?)?;
    if out != Path::new("-") {
        output::talk(format!("{}: {}", out.display(), ChartKind::from(chart)));
    }
    Ok(())
}

/// A run in drawable form.
///
/// # Errors
/// It cannot be read.
fn drawn(folder: &Path, stalls: usize, redactor: &mut Option<Redactor>) -> anyhow::Result<Drawn> {
    let redact = redactor.is_some();
    let wanted = Wanted {
        worst: 1,
        effort: Effort::BRIEF,
        stalls,
        redact,
    };
    Ok(load_drawn_with(
        &RunReader::open(folder)?,
        wanted,
        redactor,
    )?)
}

/// The newest run of each side of a diff.
pub fn newest(diff: &Diff) -> Vec<PathBuf> {
    let newest = |side: &SideSummary| {
        side.runs
            .iter()
            .max_by_key(|run| run.started_realtime_ns)
            .map(|run| PathBuf::from(&run.path))
    };
    diff.sides.iter().filter_map(newest).collect()
}

/// The page of a diff with the newest run of each side. The diff must use the same redactor.
///
/// # Errors
/// One of the runs cannot be read.
pub fn page_of_diff(
    diff: &Diff,
    newest: &[PathBuf],
    redactor: &mut Option<Redactor>,
    list: Option<&'static str>,
) -> anyhow::Result<String> {
    let runs = newest
        .iter()
        // Together they must fit into a page that users can send.
        .map(|run| drawn(run, MOST_STALLS / newest.len().max(1), redactor))
        .collect::<anyhow::Result<Vec<_>>>()?;
    Ok(html::comparison(
        diff,
        &runs.iter().collect::<Vec<_>>(),
        list,
    ))
}

/// The number of the longest stalls in a page's table.
const WORST: usize = 60;
/// The number of stalls with frames in a page.
const FRAMES: usize = 200;
/// The largest amount of stored trace read for a page's frames, bytes. The frames of one stall are searched in a second
/// of it.
const TRACE_READ: u64 = 2 << 30;

/// Writes the page of the run in a folder.
///
/// # Errors
/// The run cannot be read, or the file cannot be written.
pub fn write_page(out: &Path, run: &Path, redact: Redact) -> anyhow::Result<()> {
    let file = WholeFile::open(out)?;
    let (text, stalls, frames) = page_of(&RunReader::open(run)?, redact, None)?;
    file.write(text.as_bytes())?;
    if out != Path::new("-") {
        output::talk(format!(
            "{}: interactive page of {} bytes, {stalls} stalls, {frames} of them frame by frame",
            out.display(),
            text.len()
        ));
        if text.len() > html::MOST_BYTES {
            output::talk(format!(
                "It is larger than {:.1} MB, for the parts of its stalls alone take as much: some mail servers refuse \
                 that",
                html::MOST_BYTES as f64 / 1e6
            ));
        }
    }
    Ok(())
}

/// The page of a run, the number of stalls in it, and the number of those with frames. `list`: the address of the list
/// of runs.
///
/// # Errors
/// The run cannot be read.
pub fn page_of(
    reader: &RunReader,
    redact: Redact,
    list: Option<&'static str>,
) -> anyhow::Result<(String, usize, usize)> {
    let wanted = Wanted {
        worst: WORST,
        effort: Effort::BRIEF,
        stalls: MOST_STALLS,
        redact: redact.on,
    };
    let run = load_drawn(reader, wanted)?;
    let frames = frames(reader, &run, redact)?;
    let settings = settings(reader, &run, redact)?;
    let written = html::render(&html::Page {
        run: &run,
        frames: &frames,
        settings: &settings,
        list,
    });
    Ok((written.html, run.picture.stalls.len(), written.framed))
}

/// One stall of a run as a served page requests it, with frames if the stored trace has them; `None` if the run has no
/// such stall.
///
/// # Errors
/// The run cannot be read.
pub fn stall_of(
    reader: &RunReader,
    stall: StallId,
    redact: Redact,
) -> anyhow::Result<Option<String>> {
    let (summary, stored) = load_stall(reader, stall, redact.on)?;
    let Some(worst) = summary.worst.first() else {
        return Ok(None);
    };
    let rows = stored.and_then(|of| stall_timeline(reader, &of).ok());
    let rows = if redact.on { rows.map(redacted) } else { rows };
    Ok(Some(html::stall(
        &reader.manifest().probe.kind,
        worst,
        rows.as_deref(),
    )))
}

/// The frames of the stalls that readers most likely open, if the stored trace has them.
fn frames(reader: &RunReader, run: &Drawn, redact: Redact) -> anyhow::Result<Vec<Frames>> {
    let manifest = reader.manifest();
    let second = manifest.trace.bytes / (manifest.probe.duration_ns.0 / 1_000_000_000).max(1);
    let affordable = TRACE_READ / second.max(1);
    let most = usize::try_from(affordable)
        .unwrap_or(FRAMES)
        .clamp(8, FRAMES);
    let wanted: HashMap<StallId, usize> = html::frames_wanted(run, most)
        .into_iter()
        .enumerate()
        .map(|(at, stall)| (stall, at))
        .collect();
    let mut found = Vec::new();
    for stall in reader.stalls()? {
        let stall = stall?;
        if wanted.contains_key(&stall.id) {
            found.push(stall);
        }
    }
    // The most wanted first: the page leaves out the last ones if it is too large.
    found.order_by_key(|stall| wanted.get(&stall.id).copied());
    // A stall with missing or unreadable frames has none in the page, which says so.
    let timelines = stall_timelines(reader, &found).unwrap_or_default();
    let with_rows = timelines.into_iter().filter(|(_, rows)| !rows.is_empty());
    let frames = with_rows.map(|(at, rows)| {
        let rows = if redact.on { redacted(rows) } else { rows };
        Frames {
            stall: found[at].id,
            rows,
        }
    });
    Ok(frames.collect())
}

/// The run's audit of the machine, each finding with its gain.
fn settings(reader: &RunReader, run: &Drawn, redact: Redact) -> anyhow::Result<Vec<Setting>> {
    // From the redacted machine, if redacted: gains then name no culprits.
    let machine = run.summary.machine.as_ref();
    let Some(tuning) = machine.and_then(|machine| machine.tuning.value()) else {
        return Ok(Vec::new());
    };
    let named_anybody = run.summary.attribution.is_some() && run.summary.trust.holds();
    let measured = named_anybody.then(|| culprits_of(reader)).transpose()?;
    let gain = |finding: &KnobFinding| {
        let Some(measured) = &measured else {
            return Gain::Unknown;
        };
        let win = find(&finding.knob).and_then(|knob| measured.win(knob, &tuning.cpus));
        win.map_or(Gain::Nothing, |mut win| {
            if redact.on {
                win.culprits.clear();
            }
            Gain::Of(win)
        })
    };
    let setting = |finding: &KnobFinding| Setting {
        finding: finding.clone(),
        title: find(&finding.knob)
            .map_or_else(|| finding.knob.clone(), |knob| knob.title.to_owned()),
        gain: gain(finding),
    };
    Ok(tuning.findings.iter().map(setting).collect())
}

fn image(kind: ChartKind, format: Format, runs: &[&Drawn]) -> anyhow::Result<Vec<u8>> {
    let to_error = |error: ChartError| match error {
        // The run is fine, and another chart may work.
        ChartError::Nothing { .. } | ChartError::NotAlike { .. } => {
            anyhow::Error::from(UsageError(error.to_string()))
        }
        ChartError::Pixels(_) => error.into(),
    };
    match format {
        Format::Svg => chart::svg(kind, runs)
            .map(String::into_bytes)
            .map_err(to_error),
        #[cfg(feature = "png")]
        Format::Png => chart::png(kind, runs).map_err(to_error),
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
        let asked: Vec<ChartKind> = Chart::value_variants()
            .iter()
            .map(|chart| (*chart).into())
            .collect();
        assert_eq!(asked, ChartKind::ALL);
        for chart in Chart::value_variants() {
            let word = chart
                .to_possible_value()
                .map(|value| value.get_name().to_owned());
            assert_eq!(word.as_deref(), Some(ChartKind::from(*chart).as_str()));
        }
    }
}
