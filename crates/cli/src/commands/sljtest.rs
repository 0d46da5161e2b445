//! `sljtest`: SLJ Test's flags and screen, over a probe that reads without a hole.

use super::periods;
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::places::Places;
use crate::signals;
use crate::units::{in_millis, in_seconds};
use anyhow::Context;
use clap::Args;
use jitterscope_analyze::periods::{Effort, PeriodSearch};
use jitterscope_analyze::sljtest::DeltaBins;
use jitterscope_model::{Attribution, CpuId, CpuList, Nanos, Stall, Ticks};
use jitterscope_platform::{Machine, Topology, current_affinity, select_cpus};
use jitterscope_record::{Live, LiveSettings, Receiver, RecordError};
use jitterscope_report::sljtest::{OutlierBuffer, SljSettings, outlier_file, render};
use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Shortest delta that is recorded one by one. Storing one takes the probe nearly as long, and that time
/// lies inside its next delta: a lower limit would record its own doing.
const SHORTEST_RECORD: Nanos = Nanos(150);
/// One interval is enough: nothing here looks at them.
const INTERVAL: Nanos = Nanos(1_000_000_000);

/// Arguments of `sljtest`.
#[derive(Args, Debug)]
pub struct SljtestArgs {
    /// Bins in the histogram
    #[arg(short, long, default_value_t = 20, value_name = "BINS")]
    pub bins: usize,
    /// Write outliers to this file: ms since the start, us
    #[arg(short = 'f', long, value_name = "FILE")]
    pub outfile: Option<PathBuf>,
    /// Knee of the histogram, in ticks
    #[arg(short, long, default_value_t = 50, value_name = "TICKS")]
    pub knee: u64,
    /// Minimum expected value, in ticks
    #[arg(short, long, default_value_t = 10, value_name = "TICKS")]
    pub min: u64,
    /// Outliers to keep for --outfile, the last ones
    #[arg(short, long, default_value = "10000", value_name = "OUTLIERS", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub outbuf: u32,
    /// Wait before the test: milliseconds, or a time with a unit
    #[arg(short, long, default_value = "0", value_name = "MSECS", value_parser = in_millis)]
    pub pause: Nanos,
    /// Length of the test: seconds, or a time with a unit
    #[arg(short, long, default_value = "1", value_name = "SECONDS", value_parser = in_seconds)]
    pub runtime: Nanos,
    /// Show the sum of the deltas in each bin instead of their number
    #[arg(short, long)]
    pub sum: bool,
    /// Width of the screen, 54 to 120
    #[arg(short, long, default_value_t = 80, value_name = "COLUMNS")]
    pub width: usize,
    /// CPUs to measure, all at once [default: the isolated ones, else the highest]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub cpus: Option<CpuList>,
    /// List the significant periods of the outliers, for each culprit where the kernel's events can be had
    #[arg(long)]
    pub periods: bool,
}

/// Runs it.
///
/// # Errors
/// Wrong arguments, a file that cannot be written, or nothing could be measured.
pub fn run(args: &SljtestArgs, _places: &Places) -> anyhow::Result<Exit> {
    let settings =
        SljSettings { bins: args.bins, knee: args.knee, min: args.min, sum: args.sum, width: args.width };
    settings.check().map_err(|error| UsageError(error.to_string()))?;
    let file = args.outfile.as_deref().map(OutlierFile::open).transpose()?;
    let machine = Machine::host();
    let allowed = current_affinity().context("the affinity mask of this process cannot be read")?;
    let cpus = select_cpus(args.cpus.as_ref(), &Topology::read(&machine), &allowed)
        .map_err(|error| UsageError(format!("--cpus: {error}")))?
        .cpus;
    let stop = signals::stop_flag().context("signal handlers cannot be set")?;
    std::thread::sleep(Duration::from_nanos(args.pause.0));
    let live = LiveSettings {
        cpus: cpus.clone(),
        duration: args.runtime,
        interval: INTERVAL,
        attribute: args.periods,
    };
    let live = Live::prepare(&machine, live)?;
    let rate = live.rate();
    if let Some(why) = live.clock_fallback() {
        output::talk(format_args!("{why}: ticks are nanoseconds of CLOCK_MONOTONIC_RAW"));
    }
    if live.helpers().is_empty() {
        output::talk("every allowed CPU is measured: our own helper thread disturbs one of them");
    }
    let threshold = Ticks(args.knee.saturating_add(1)).max(rate.ticks(SHORTEST_RECORD));
    let mut gatherer = Gatherer {
        settings,
        room: args.outbuf as usize,
        cpus: BTreeMap::new(),
        periods: args.periods.then(|| PeriodSearch::new(Effort::FULL)),
    };
    let measured = live.measure(threshold, &stop, &mut gatherer).map_err(usage_if_asked_wrongly)?;
    for result in &measured.results {
        let gathered = gatherer.cpus.entry(result.cpu).or_insert_with(|| OfCpu::new(settings));
        let mut bins = gathered.bins.clone();
        if result.dropped_records > 0 {
            bins = DeltaBins::new(args.bins, Ticks(args.min), Ticks(args.knee));
            bins.add_above(result);
            output::talk(format_args!(
                "CPU {}: {} outliers came too fast to be recorded; they are counted to three digits, and missing from --outfile",
                result.cpu, result.dropped_records
            ));
        }
        bins.add_below(result);
        let buffer = OutlierBuffer { seen: gathered.seen, size: args.outbuf.into() };
        let screen = render(settings, &bins, result, rate, file.is_some().then_some(buffer));
        if measured.results.len() > 1 {
            output::result(&format!("CPU {}", result.cpu))?;
        }
        output::result(&screen)?;
        if let Some(why) = &result.ended_early {
            output::talk(why);
        }
    }
    let start = measured.results.iter().map(|result| result.start).min().unwrap_or_default();
    let end = measured.results.iter().map(|result| result.end).max().unwrap_or_default();
    if let Some(file) = file {
        let outliers: Vec<(Ticks, Ticks)> = gatherer.outliers().collect();
        file.fill(&outlier_file(&outliers, start, rate))?;
        if threshold.0 > args.knee + 1 {
            output::talk(format_args!(
                "outliers shorter than {} ticks ({}) are in the histogram but not in the file: recording one takes about as long",
                threshold.0,
                rate.nanos(threshold)
            ));
        }
    }
    if let Some(search) = gatherer.periods {
        if let Some(why) = &measured.blind {
            output::talk(format_args!("outliers are not attributed: {why}"));
        }
        output::result(&periods::text(search, start, end, rate))?;
    }
    Ok(Exit::Ok)
}

fn usage_if_asked_wrongly(error: RecordError) -> anyhow::Error {
    match error {
        RecordError::Threshold { .. } => UsageError(format!("-k is too large: {error}")).into(),
        other => other.into(),
    }
}

/// The file of outliers: opened before the test, filled after it. One that was made for it and never
/// filled is removed.
struct OutlierFile<'a> {
    path: &'a Path,
    file: File,
    made: bool,
}

impl<'a> OutlierFile<'a> {
    fn open(path: &'a Path) -> anyhow::Result<OutlierFile<'a>> {
        let made = !path.exists();
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = opened.with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(OutlierFile { path, file, made })
    }

    fn fill(mut self, text: &str) -> anyhow::Result<()> {
        let regular = self.file.metadata().is_ok_and(|m| m.is_file());
        let emptied = if regular { self.file.set_len(0) } else { Ok(()) };
        emptied
            .and_then(|()| self.file.write_all(text.as_bytes()))
            .with_context(|| format!("{} cannot be written", self.path.display()))?;
        self.made = false;
        Ok(())
    }
}

impl Drop for OutlierFile<'_> {
    fn drop(&mut self) {
        if self.made {
            // Nothing was measured, which is the error that is told.
            let _ = std::fs::remove_file(self.path);
        }
    }
}

/// What is kept of one CPU.
struct OfCpu {
    bins: DeltaBins,
    last: VecDeque<(Ticks, Ticks)>,
    seen: u64,
}

impl OfCpu {
    fn new(settings: SljSettings) -> OfCpu {
        let bins = DeltaBins::new(settings.bins, Ticks(settings.min), Ticks(settings.knee));
        OfCpu { bins, last: VecDeque::new(), seen: 0 }
    }
}

/// Counts stalls exactly, and keeps the last of them.
struct Gatherer {
    settings: SljSettings,
    room: usize,
    cpus: BTreeMap<CpuId, OfCpu>,
    periods: Option<PeriodSearch>,
}

impl Gatherer {
    fn outliers(&self) -> impl Iterator<Item = (Ticks, Ticks)> + '_ {
        self.cpus.values().flat_map(|cpu| cpu.last.iter().copied())
    }
}

impl Receiver for Gatherer {
    fn stall(&mut self, stall: &Stall, attribution: Option<&Attribution>) {
        let settings = self.settings;
        let cpu = self.cpus.entry(stall.cpu).or_insert_with(|| OfCpu::new(settings));
        cpu.bins.add(stall.length(), 1);
        cpu.seen += 1;
        if cpu.last.len() == self.room {
            cpu.last.pop_front();
        }
        cpu.last.push_back((stall.start, stall.length()));
        if let Some(periods) = &mut self.periods {
            periods.add(stall, attribution);
        }
    }
}
