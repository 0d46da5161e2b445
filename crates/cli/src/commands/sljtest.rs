//! `sljtest`: SLJ Test's flags and screen, with a probe that reads without gaps.

use super::leftovers;
use super::machine_tuning;
use super::sampler::{stored, usage_if_asked_wrongly};
use crate::completion;
use crate::exit::{Exit, UsageError};
use crate::measured::{self, Remarks};
use crate::output;
use crate::places::Places;
use crate::reading::{ReadingArgs, in_fronts};
use crate::signals;
use crate::units::{in_millis, in_seconds, whole};
use anyhow::Context;
use clap::Args;
use jitterscope_analyze::periods::{Effort, FALSE_ALARM, PeriodSearch, PeriodSummary, TickOf};
use jitterscope_analyze::sljtest::{CpuBins, DeltaBins, Outliers};
use jitterscope_export::ExportError;
use jitterscope_model::{CpuList, EventGrain, Nanos, ProbeKind, ProbeResult, TickRate, Ticks};
use jitterscope_platform::{Machine, OpenedOutput, OutputPlace};
use jitterscope_recording::{
    Extra, LARGEST_THRESHOLD, Output, RecordError, RecordSettings, RunSettings, WriterThread,
    record,
};
use jitterscope_store::RunReader;
use jitterscope_view::sljtest::{OutlierBuffer, SljSettings, outlier_file, render};
use jitterscope_view::sljtest_json::{SljCpu, json};
use jitterscope_view::text::periods_table;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The shortest individually recorded delta, if the clock allows it: of shorter ones there are many.
const SHORTEST_RECORD: Nanos = Nanos(150);
/// The same for the file of outliers: what the probe can tell from its own work. Storing a delta takes time, which lies
/// inside the next delta.
const SHORTEST_OUTLIER: Nanos = Nanos(1);
/// One interval is enough: this command does not use them.
const INTERVAL: Nanos = Nanos(1_000_000_000);

/// The warm-up: long enough for the stalls from which the cost of an entry is learnt.
const WARM_UP: Nanos = Nanos(300_000_000);
/// The trace buffer of each measured CPU, KiB.
const TRACE_KIB: u32 = 8192;
/// The raw trace kept with the run, bytes.
const TRACE_LIMIT: u64 = 64 << 20;

/// Arguments of `sljtest`.
#[derive(Args, Debug)]
#[command(mut_arg("threshold", |arg| {
    in_fronts(arg).help("The shortest stall: nanoseconds, or a time with a unit [default: the knee]")
}))]
pub struct SljtestArgs {
    /// Bins in the histogram
    #[arg(short, long, default_value = "20", value_name = "BINS", value_parser = whole, allow_negative_numbers = true)]
    pub bins: u64,
    /// Write outliers to this file, in order of time: ms since the start, us. It has every delta above the
    /// knee, the last --outbuf of each CPU. Deltas as short as the probe's own work on this machine
    /// (usually below 100ns) are only counted, in the histogram and on standard error
    #[arg(short = 'f', long, value_name = "FILE")]
    pub outfile: Option<PathBuf>,
    /// Knee of the histogram, in ticks
    #[arg(short, long, default_value = "50", value_name = "TICKS", value_parser = whole, allow_negative_numbers = true)]
    pub knee: u64,
    /// Minimum expected value, in ticks
    #[arg(short, long, default_value = "10", value_name = "TICKS", value_parser = whole, allow_negative_numbers = true)]
    pub min: u64,
    /// Outliers to keep for --outfile, the last ones
    #[arg(short, long, default_value = "10000", value_name = "OUTLIERS", value_parser = outbuf, allow_negative_numbers = true)]
    pub outbuf: usize,
    /// Wait before the test: milliseconds, or a time with a unit
    #[arg(short, long, default_value = "0", value_name = "MSECS", value_parser = in_millis, allow_negative_numbers = true)]
    pub pause: Nanos,
    /// Length of the test: seconds, or a time with a unit
    #[arg(short, long, default_value = "1", value_name = "SECONDS", value_parser = in_seconds, allow_negative_numbers = true)]
    pub runtime: Nanos,
    /// Show the sum of the deltas in each bin instead of their number
    #[arg(short, long)]
    pub sum: bool,
    /// Width of the screen, 54 to 120
    #[arg(short, long, default_value = "80", value_name = "COLUMNS", value_parser = whole, allow_negative_numbers = true)]
    pub width: u64,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// CPUs to measure, all at once [default: those that tune keeps undisturbed, else the isolated ones,
    /// else the highest]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true, add = completion::cpus())]
    pub cpus: Option<CpuList>,
    /// List the significant periods of the outliers, for each culprit if kernel events are available
    #[arg(long)]
    pub periods: bool,
    /// Name of this configuration, for comparing runs
    #[arg(long, default_value = "sljtest", value_name = "NAME", add = crate::completion::labels())]
    pub label: String,
    /// Only measure: record no kernel events, name nobody
    #[arg(long)]
    pub no_trace: bool,
    /// Print JSON: bins (numbers and sums), statistics, recommendations and periods
    #[arg(long, conflicts_with_all = ["sum", "width"])]
    pub json: bool,
}

fn outbuf(text: &str) -> Result<usize, String> {
    match usize::try_from(whole(text)?) {
        Ok(room @ 1..=100_000_000) => Ok(room),
        _ => Err("must be 1 to 100000000".into()),
    }
}

/// Runs `sljtest`.
///
/// # Errors
/// Wrong arguments, a file that cannot be written, or nothing could be measured.
pub fn run(args: &SljtestArgs, places: &Places) -> anyhow::Result<Exit> {
    let settings = settings(args)?;
    let file = args.outfile.as_deref().map(OutlierFile::open).transpose()?;
    let machine = Machine::host();
    let cpus = measured::choose(&machine, args.cpus.as_ref(), "--cpus")?;
    let mut remarks = Remarks(measured::remarks(&cpus, ProbeKind::Spin, places)?);
    let stop = signals::stop_flag(places).context("signal handlers cannot be set")?;
    wait(args.pause, &stop)?;
    let label = args.label.clone();
    let recording = RecordSettings {
        run: RunSettings {
            tuning: machine_tuning::of(&machine, &cpus.cpus),
            writer: WriterThread::default(),
            clock: args.reading.clock.kind(),
            trace_buffer_kib: TRACE_KIB,
            trace_limit_bytes: TRACE_LIMIT,
            asked: Vec::new(),
            label,
            runs_dir: places.runs()?,
            command_line: crate::given::given(),
            profile: None,
        },
        cpus,
        wakeup: None,
        duration: args.runtime,
        warmup: WARM_UP,
        threshold: args.reading.threshold,
        interval: INTERVAL,
        fifo_priority: None,
        events: (!args.no_trace).then_some(EventGrain::All),
        graph: Vec::new(),
    };
    let empty = DeltaBins::new(settings.bins, Ticks(args.min), Ticks(args.knee));
    let periods = args.periods.then(|| PeriodSearch::new(Effort::FULL));
    let mut gathered = Outliers::new(empty, args.outbuf, periods);
    let outputs = vec![Output::to("sljtest", &mut gathered)];
    let extra = Extra {
        outputs,
        least: Ticks(args.knee.saturating_add(1)),
        shortest: Some(match file {
            Some(_) => SHORTEST_OUTLIER,
            None => SHORTEST_RECORD,
        }),
        watch: None,
    };
    let outcome =
        record(&machine, &recording, extra, &stop, &mut remarks).map_err(usage_if_asked_wrongly)?;
    let run = RunReader::open(&outcome.path)?;
    let manifest = run.manifest();
    let rate = manifest.rate;
    stored(manifest);
    leftovers::tell_left_behind(outcome.taken_down);
    let mut binned = Vec::new();
    for result in &manifest.results {
        let CpuBins { bins, seen } = gathered.bins(result);
        if result.dropped_records > 0 {
            output::talk(format_args!(
                "CPU {}: {} outliers came too fast to be recorded; they are counted to three digits, and missing from --outfile",
                result.cpu, result.dropped_records
            ));
        }
        let knee_decides = result.threshold_ticks == args.knee + 1;
        let buffer = OutlierBuffer {
            seen,
            size: args.outbuf as u64,
            knee_decides,
        };
        binned.push((result, bins, file.is_some().then_some(buffer)));
    }
    let cpus: Vec<SljCpu<'_>> = binned
        .iter()
        .map(|(result, bins, outliers)| SljCpu {
            bins,
            result,
            outliers: *outliers,
        })
        .collect();
    if !args.json {
        screens(settings, rate, &cpus)?;
    }
    let start = manifest
        .results
        .iter()
        .map(|result| result.start)
        .min()
        .unwrap_or_default();
    let end = manifest
        .results
        .iter()
        .map(|result| result.end)
        .max()
        .unwrap_or_default();
    if let Some(file) = file {
        let outliers: Vec<(Ticks, Ticks)> = gathered.last().collect();
        file.fill(&outlier_file(&outliers, start, rate))?;
        tell_short(&manifest.results, args.knee, rate);
    }
    let of = TickOf {
        kernel_hz: None,
        virtual_machine: manifest.host.hypervisor.is_some(),
    };
    let periods = gathered
        .take_periods()
        .map(|search| PeriodSummary::new(search.finish(start, end, rate, FALSE_ALARM), of));
    if args.json {
        output::json(&json(settings, rate, &cpus, periods.as_ref()))?;
    } else if let Some(periods) = &periods {
        output::result(&periods_table(periods, cpus.len() > 1, output::style()))?;
    }
    Ok(Exit::Ok)
}

/// Says how many outliers are in no file, because the probe's own work takes as long.
fn tell_short(results: &[ProbeResult], knee: u64, rate: TickRate) {
    for result in results {
        let below = result.below.iter();
        let outliers = below.filter(|(delta, _)| u64::from(*delta) > knee);
        let short: u64 = outliers.map(|(_, count)| count).sum();
        if short > 0 {
            let threshold = Ticks(result.threshold_ticks);
            output::talk(format_args!(
                "CPU {}: {short} outliers are shorter than {} ticks ({}), which the probe's own work takes: the histogram counts them, the file does not have them",
                result.cpu,
                threshold.0,
                rate.nanos(threshold)
            ));
        }
    }
}

/// The screen of each CPU.
fn screens(settings: SljSettings, rate: TickRate, cpus: &[SljCpu<'_>]) -> anyhow::Result<()> {
    for cpu in cpus {
        if cpus.len() > 1 {
            output::result(&format!("CPU {}", cpu.result.cpu))?;
        }
        output::result(&render(settings, cpu.bins, cpu.result, rate, cpu.outliers))?;
    }
    Ok(())
}

/// The settings; checks that they make a histogram and that the file is not the screen.
fn settings(args: &SljtestArgs) -> Result<SljSettings, UsageError> {
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let (bins, width) = (size(args.bins), size(args.width));
    let settings = SljSettings {
        bins,
        knee: args.knee,
        min: args.min,
        sum: args.sum,
        width,
    };
    settings
        .check()
        .map_err(|error| UsageError(error.to_string()))?;
    // Deltas up to the knee are counted by the tick.
    let most = LARGEST_THRESHOLD.0 - 1;
    if args.knee > most {
        return Err(UsageError(format!(
            "-k {} is out of range: it can be at most {most} ticks",
            args.knee
        )));
    }
    if args.outfile.as_deref() == Some(Path::new("-")) {
        return Err(UsageError(
            "-f -: standard output has the screen; name a file for the outliers".into(),
        ));
    }
    Ok(settings)
}

/// The pause before the test, in small steps, so that a signal ends it.
fn wait(pause: Nanos, stop: &AtomicBool) -> Result<(), RecordError> {
    let begun = Instant::now();
    let pause = Duration::from_nanos(pause.0);
    while let Some(left) = pause
        .checked_sub(begun.elapsed())
        .filter(|left| !left.is_zero())
    {
        if stop.load(Ordering::Relaxed) {
            return Err(RecordError::InterruptedEarly);
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
    Ok(())
}

/// The file of outliers: opened before the test, written after it. A new file that stays empty is removed.
struct OutlierFile<'a> {
    path: &'a Path,
    place: OutputPlace,
    opened: OpenedOutput,
}

impl<'a> OutlierFile<'a> {
    fn open(path: &'a Path) -> anyhow::Result<OutlierFile<'a>> {
        let found = OutputPlace::find(path).and_then(OutputPlace::open);
        let (place, opened) = found.map_err(|error| ExportError::access(path, error))?;
        Ok(OutlierFile {
            path,
            place,
            opened,
        })
    }

    fn fill(mut self, text: &str) -> anyhow::Result<()> {
        self.opened
            .empty()
            .and_then(|()| self.opened.file.write_all(text.as_bytes()))
            .map_err(|source| ExportError::file(self.path, source))?;
        self.opened.made = false;
        Ok(())
    }
}

impl Drop for OutlierFile<'_> {
    fn drop(&mut self) {
        if self.opened.made {
            // The error to report is that nothing was measured.
            let _ = self.place.folder().remove_file(self.place.name());
        }
    }
}
