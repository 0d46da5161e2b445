//! `sampler`: the jitter sampler's flags and series, written while it runs, with every stall.

use super::export::{TARGETS, places_apart, told, told_by_target};
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::places::Places;
use crate::signals;
use crate::units::{in_millis, in_nanos, in_seconds};
use anyhow::Context;
use clap::Args;
use hdrhistogram::Histogram;
use jitterscope_export::{CsvRows, ExportError, Exporter, Formulas, Pace, RunFacts, Target, begin_all};
use jitterscope_model::{Attribution, CpuList, IntervalRow, Nanos, ProbeResult, Stall};
use jitterscope_platform::{Machine, Topology, current_affinity, host_facts, select_cpus};
use jitterscope_record::{Live, LiveSettings, Receiver, RecordError};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Arguments of `sampler`.
#[derive(Args, Debug)]
#[command(after_help = TARGETS)]
pub struct SamplerArgs {
    /// CPUs to measure, all at once [default: the isolated ones, else the highest]
    #[arg(short, long = "cpus", value_name = "LIST", allow_hyphen_values = true)]
    pub cpus: Option<CpuList>,
    /// How long: seconds, or a time with a unit
    #[arg(short, long, default_value = "60", value_name = "SECONDS", value_parser = in_seconds, allow_negative_numbers = true)]
    pub duration: Nanos,
    /// Reporting interval: milliseconds, or a time with a unit
    #[arg(short = 'r', long, default_value = "1000", value_name = "MSECS", value_parser = interval, allow_negative_numbers = true)]
    pub interval: Nanos,
    /// The shortest delay to report: nanoseconds, or a time with a unit
    #[arg(short, long, default_value = "300", value_name = "NSECS", value_parser = in_nanos, allow_negative_numbers = true)]
    pub threshold: Nanos,
    /// Where to, and in which format; may be repeated [default: the series as CSV on standard output]
    #[arg(short, long = "output", value_name = "TARGET")]
    pub output: Vec<Target>,
    /// Name of this configuration, a tag of what is written
    #[arg(long, short, default_value = "sampler", value_name = "NAME")]
    pub label: String,
    /// Record kernel events and name each stall's culprit in what is written
    #[arg(long)]
    pub attribute: bool,
    /// Print JSON lines, as -o json://- does: run, stalls, intervals, end
    #[arg(long)]
    pub json: bool,
}

fn interval(text: &str) -> Result<Nanos, String> {
    match in_millis(text)? {
        Nanos(0..=999_999) => Err("must be at least 1ms".into()),
        some => Ok(some),
    }
}

/// Runs it.
///
/// # Errors
/// Wrong arguments, a target that cannot be opened or written, or nothing could be measured.
pub fn run(args: &SamplerArgs, places: &Places) -> anyhow::Result<Exit> {
    let mut asked = args.output.clone();
    let lines = Target::Json { path: "-".into() };
    if args.json && !asked.contains(&lines) {
        asked.push(lines);
    }
    let targets = targets(&asked)?;
    let machine = Machine::host();
    let topology = Topology::read(&machine);
    let allowed = current_affinity().context("the affinity mask of this process cannot be read")?;
    let cpus = select_cpus(args.cpus.as_ref(), &topology, &allowed)
        .map_err(|error| UsageError(format!("-c: {error}")))?
        .cpus;
    let stop = signals::stop_flag(places).context("signal handlers cannot be set")?;
    let measured_cpus = cpus.clone();
    let settings =
        LiveSettings { cpus, duration: args.duration, interval: args.interval, attribute: args.attribute };
    let live = Live::prepare(&machine, settings)?;
    let rate = live.rate();
    if let Some(why) = live.clock_fallback() {
        output::talk(format_args!("measuring with CLOCK_MONOTONIC_RAW: {why}"));
    }
    if live.helpers().is_empty() {
        output::talk("every allowed CPU is measured: our own helper thread disturbs one of them");
    }
    for remark in targets.iter().filter_map(Target::remark) {
        output::talk(remark);
    }
    let threshold = rate.ticks(args.threshold);
    live.check_threshold(threshold).map_err(usage_if_asked_wrongly)?;
    let sinks: Result<Vec<_>, _> = targets.iter().map(|target| target.open(Pace::Live)).collect();
    let mut sinks = sinks.map_err(told_by_target)?;
    let facts = RunFacts {
        id: String::new(),
        label: args.label.clone(),
        hostname: host_facts(&machine, &topology).hostname,
        probe: "spin".into(),
        cpus: measured_cpus,
        threshold: args.threshold,
        interval: args.interval,
        rate,
        clock: live.read_clocks(),
    };
    let mut beginning: Vec<&mut dyn Exporter> = Vec::new();
    for sink in &mut sinks {
        beginning.push(sink.as_mut());
    }
    begin_all(&mut beginning, &facts).map_err(told_by_target)?;
    settings_lines(args, targets.iter().any(Target::is_stdout))?;
    let mut tee = Tee { sinks, failed: None };
    let measured = live.measure(threshold, &stop, &mut tee).map_err(usage_if_asked_wrongly)?;
    if let Some(why) = &measured.blind {
        output::talk(format_args!("stalls are not attributed: {why}"));
    }
    finish(tee, &targets, &measured.results)
}

/// The ancestor's three lines; on stderr when stdout is a target.
fn settings_lines(args: &SamplerArgs, stdout_taken: bool) -> anyhow::Result<()> {
    let mut text = String::new();
    let seconds = args.duration.0 as f64 / 1e9;
    let ok = writeln!(
        text,
        "duration: {seconds}s\nreport interval: {}ms\nreport threshold: {}ns",
        args.interval.0 as f64 / 1e6,
        args.threshold.0
    );
    debug_assert!(ok.is_ok(), "a String takes everything");
    if stdout_taken {
        output::talk_page(&text);
        return Ok(());
    }
    output::result(&text)
}

fn finish(tee: Tee, targets: &[Target], results: &[ProbeResult]) -> anyhow::Result<Exit> {
    let mut failed = tee.failed;
    let mut lost = false;
    for (target, sink) in targets.iter().zip(tee.sinks) {
        match sink.finish(results) {
            Ok(delivery) => {
                lost |= delivery.lost > 0;
                output::talk(told(target, &delivery));
            }
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    for result in results.iter().filter(|result| result.dropped_records > 0) {
        output::talk(format_args!(
            "CPU {}: {} stalls came too fast to be written one by one; the series has them all",
            result.cpu, result.dropped_records
        ));
    }
    for why in results.iter().filter_map(|result| result.ended_early.as_ref()) {
        output::talk(why);
    }
    match failed {
        Some(error) => Err(error.into()),
        None if lost => Ok(Exit::Failed),
        None => Ok(Exit::Ok),
    }
}

fn usage_if_asked_wrongly(error: RecordError) -> anyhow::Error {
    match error {
        RecordError::Threshold { .. } => UsageError(format!("-t: {error}")).into(),
        other => other.into(),
    }
}

/// What to open: a CSV file without a choice of rows is the series, and beside it the stalls.
fn targets(asked: &[Target]) -> Result<Vec<Target>, UsageError> {
    if asked.is_empty() {
        return Ok(vec![Target::Csv {
            path: "-".into(),
            rows: Some(CsvRows::Series),
            formulas: Formulas::Keep,
        }]);
    }
    let mut targets = Vec::new();
    for target in asked {
        match target {
            Target::Csv { path, rows: None, formulas } => {
                let of = |path: PathBuf, rows| Target::Csv { path, rows: Some(rows), formulas: *formulas };
                targets.push(of(path.clone(), CsvRows::Series));
                if path != Path::new("-") {
                    targets.push(of(stalls_beside(path), CsvRows::Stalls));
                }
            }
            other => targets.push(other.clone()),
        }
    }
    places_apart(&targets)?;
    Ok(targets)
}

/// `jitter.csv` has its stalls in `jitter-stalls.csv`.
fn stalls_beside(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|e| format!(".{}", e.to_string_lossy())).unwrap_or_default();
    path.with_file_name(format!("{stem}-stalls{extension}"))
}

/// Gives every row to every target. The first target that fails ends the measurement.
struct Tee {
    sinks: Vec<Box<dyn Exporter>>,
    failed: Option<ExportError>,
}

impl Tee {
    fn each(&mut self, mut give: impl FnMut(&mut dyn Exporter) -> Result<(), ExportError>) {
        for sink in &mut self.sinks {
            if self.failed.is_none() {
                self.failed = give(sink.as_mut()).err();
            }
        }
    }
}

impl Receiver for Tee {
    fn stall(&mut self, stall: &Stall, attribution: Option<&Attribution>) {
        self.each(|sink| sink.stall(stall, attribution));
    }

    fn interval(&mut self, row: &IntervalRow, lengths: &Histogram<u64>) {
        self.each(|sink| sink.interval(row, lengths));
    }

    fn tick(&mut self) {
        self.each(|sink| sink.tick());
    }

    fn gave_up(&self) -> bool {
        self.failed.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_csv_file_is_the_series_with_the_stalls_beside_it() {
        let asked: Vec<Target> =
            ["csv://a/j.csv", "csv://b?rows=stalls", "csv://-"].iter().map(|t| t.parse().unwrap()).collect();
        let shown: Vec<String> = targets(&asked).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["csv://a/j.csv", "csv://a/j-stalls.csv", "csv://b", "csv://-"]);
        let twice: Vec<Target> = ["csv://-", "json://-"].iter().map(|t| t.parse().unwrap()).collect();
        assert!(targets(&twice).unwrap_err().0.contains("only one"));
    }
}
