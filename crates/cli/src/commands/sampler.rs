//! `sampler`: the jitter sampler's flags and series, written during the measurement, with every stall. It stores a run
//! like any other, so that a spike in the series leads to the trace of that moment.

use super::leftovers;
use super::machine_tuning;
use super::outputs::{of_recording, places_apart, remarks, tell, told_by_target};
use crate::completion;
use crate::exit::{Exit, UnavailableError, UsageError};
use crate::measured::{self, Remarks};
use crate::output;
use crate::places::Places;
use crate::reading::{ReadingArgs, in_fronts};
use crate::signals;
use crate::units::{in_millis, in_seconds};
use anyhow::Context;
use clap::Args;
use jitterscope_export::{Destination, DestinationError};
use jitterscope_model::{CpuList, EventGrain, Nanos, ProbeKind, RunManifest, Warning};
use jitterscope_platform::Machine;
use jitterscope_recording::{
    Extra, Observer, Output, RecordError, RecordSettings, RunSettings, WriterThread, record,
};
use jitterscope_store::{RunReader, StoreError};
use jitterscope_view::record_error;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The warm-up: long enough for the stalls from which the cost of an entry is learnt.
const WARM_UP: Nanos = Nanos(300_000_000);
/// The trace buffer of each measured CPU, KiB.
const TRACE_KIB: u32 = 8192;
/// The raw trace kept with the run, bytes; beyond it only the parts around the worst stalls.
const TRACE_LIMIT: u64 = 256 << 20;

/// Arguments of `sampler`.
#[derive(Args, Debug)]
#[command(mut_arg("threshold", |arg| {
    in_fronts(arg).help("The shortest stall: nanoseconds, or a time with a unit [default: 300ns, or what the clock allows if that is more]")
}))]
#[command(after_help = jitterscope_export::help())]
pub struct SamplerArgs {
    /// CPUs to measure, all at once [default: those that tune keeps undisturbed, else the isolated ones,
    /// else the highest]
    #[arg(short, long = "cpus", value_name = "LIST", allow_hyphen_values = true, add = completion::cpus())]
    pub cpus: Option<CpuList>,
    /// How long: seconds, or a time with a unit
    #[arg(short, long, default_value = "60", value_name = "SECONDS", value_parser = in_seconds, allow_negative_numbers = true)]
    pub duration: Nanos,
    /// Reporting interval: milliseconds, or a time with a unit
    #[arg(short = 'r', long, default_value = "1000", value_name = "MSECS", value_parser = interval, allow_negative_numbers = true)]
    pub interval: Nanos,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Where to, and in which format; may be repeated [default: the series as CSV on standard output]
    #[arg(short, long = "output", value_name = "TARGET")]
    pub output: Vec<Destination>,
    /// Name of this configuration, a tag of what is written
    #[arg(long, short, default_value = "sampler", value_name = "NAME", add = crate::completion::labels())]
    pub label: String,
    /// Name each stall's culprit in what is written; it does so anyway where it can
    #[arg(long, hide = true, conflicts_with = "no_trace")]
    pub attribute: bool,
    /// Only measure: record no kernel events, name nobody
    #[arg(long)]
    pub no_trace: bool,
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

/// Runs `sampler`.
///
/// # Errors
/// Wrong arguments, a target that cannot be opened or written, or nothing could be measured.
pub fn run(args: &SamplerArgs, places: &Places) -> anyhow::Result<Exit> {
    let mut asked = args.output.clone();
    let lines: Destination = "json://-".parse().map_err(wrong)?;
    if args.json && !asked.contains(&lines) {
        asked.push(lines);
    }
    let targets = targets(&asked)?;
    let machine = Machine::host();
    let cpus = measured::choose(&machine, args.cpus.as_ref(), "-c")?;
    let told_of_cpus = measured::remarks(&cpus, ProbeKind::Spin, places)?;
    let stop = signals::stop_flag(places).context("signal handlers cannot be set")?;
    remarks(&targets, false);
    let settings = RecordSettings {
        run: RunSettings {
            tuning: machine_tuning::of(&machine, &cpus.cpus),
            writer: WriterThread::default(),
            clock: args.reading.clock.kind(),
            trace_buffer_kib: TRACE_KIB,
            trace_limit_bytes: TRACE_LIMIT,
            asked: Vec::new(),
            label: args.label.clone(),
            runs_dir: places.runs()?,
            command_line: crate::given::given(),
            profile: None,
        },
        cpus,
        wakeup: None,
        duration: args.duration,
        warmup: WARM_UP,
        threshold: args.reading.threshold,
        interval: args.interval,
        fifo_priority: None,
        events: (!args.no_trace).then_some(EventGrain::All),
        graph: Vec::new(),
    };
    let outputs = of_recording(&targets)
        .into_iter()
        .map(Output::essential)
        .collect();
    let extra = Extra {
        outputs,
        ..Extra::default()
    };
    let mut front = Front {
        args,
        remarks: Remarks(told_of_cpus),
        stdout_taken: targets.iter().any(Destination::is_stdout),
        printed: Ok(()),
    };
    let outcome =
        record(&machine, &settings, extra, &stop, &mut front).map_err(usage_if_asked_wrongly)?;
    front.printed?;
    stored(RunReader::open(&outcome.path)?.manifest());
    leftovers::tell_left_behind(outcome.taken_down);
    Ok(tell(&targets, &outcome.outputs, false))
}

/// Prints the settings once everything is ready.
struct Front<'a> {
    args: &'a SamplerArgs,
    remarks: Remarks,
    stdout_taken: bool,
    printed: anyhow::Result<()>,
}

impl Observer for Front<'_> {
    fn measuring(&mut self, threshold: Nanos) {
        self.remarks.measuring(threshold);
        self.printed = settings_lines(self.args, threshold, self.stdout_taken);
    }
}

/// Prints the location of the run, and the limits of what it shows. Losses of its outputs are reported separately.
pub fn stored(manifest: &RunManifest) {
    for warning in manifest
        .warnings
        .iter()
        .filter(|said| !matches!(said, Warning::OutputLost { .. }))
    {
        output::talk(jitterscope_view::warning(warning));
    }
    output::talk(format_args!(
        "kept as run {id}: jitterscope report {id}",
        id = manifest.id
    ));
}

/// The ancestor's three lines; on stderr if stdout is a target.
fn settings_lines(args: &SamplerArgs, threshold: Nanos, stdout_taken: bool) -> anyhow::Result<()> {
    let mut text = String::new();
    let seconds = args.duration.0 as f64 / 1e9;
    let ok = writeln!(
        text,
        "duration: {seconds}s\nreport interval: {}ms\nreport threshold: {}ns",
        args.interval.0 as f64 / 1e6,
        threshold.0
    );
    debug_assert!(ok.is_ok(), "a String takes everything");
    if stdout_taken {
        output::talk_page(&text);
        return Ok(());
    }
    output::result(&text)
}

/// The error of a front: a wrong argument, or a failure.
pub fn usage_if_asked_wrongly(error: RecordError) -> anyhow::Error {
    match error {
        RecordError::Threshold { .. } => UsageError(format!("-t: {error}")).into(),
        RecordError::Store(StoreError::Label { .. }) => UsageError(error.to_string()).into(),
        RecordError::Output(error) => told_by_target(error),
        error if error.is_unavailable_here() => UnavailableError(record_error(&error)).into(),
        other => other.into(),
    }
}

/// The targets to open: a CSV file without a choice of rows is the series, with the stalls in a second file.
fn targets(asked: &[Destination]) -> Result<Vec<Destination>, UsageError> {
    if asked.is_empty() {
        return Ok(vec!["csv://-?rows=series".parse().map_err(wrong)?]);
    }
    let mut targets = Vec::new();
    for target in asked {
        match target.path() {
            Some(path) if target.scheme() == "csv" && target.option("rows").is_none() => {
                targets.push(target.with(path, ("rows", "series")).map_err(wrong)?);
                if !target.is_stdout() {
                    targets.push(
                        target
                            .with(&stalls_beside(path), ("rows", "stalls"))
                            .map_err(wrong)?,
                    );
                }
            }
            _ => targets.push(target.clone()),
        }
    }
    places_apart(&targets)?;
    Ok(targets)
}

fn wrong(error: DestinationError) -> UsageError {
    UsageError(error.to_string())
}

/// `jitter.csv` has its stalls in `jitter-stalls.csv`.
fn stalls_beside(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path
        .extension()
        .map(|e| format!(".{}", e.to_string_lossy()))
        .unwrap_or_default();
    path.with_file_name(format!("{stem}-stalls{extension}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_csv_file_is_the_series_with_the_stalls_beside_it() {
        let asked: Vec<Destination> = ["csv://a/j.csv", "csv://b?rows=stalls", "csv://-"]
            .iter()
            .map(|t| t.parse().unwrap())
            .collect();
        let shown: Vec<String> = targets(&asked)
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            shown,
            [
                "csv://a/j.csv",
                "csv://a/j-stalls.csv",
                "csv://b",
                "csv://-"
            ]
        );
        let twice: Vec<Destination> = ["csv://-", "json://-"]
            .iter()
            .map(|t| t.parse().unwrap())
            .collect();
        assert!(targets(&twice).unwrap_err().0.contains("only one"));
    }
}
