//! Arguments of `record pipeline`.

use super::gate::Gates;
use crate::reading::ClockArgs;
use crate::units::{duration, size, some_duration};
use clap::{Args, ValueEnum};
use jitterscope_export::Destination;
use jitterscope_model::{JournalWriting, Nanos};
use jitterscope_recording::pipeline::ScheduleChoice;
use std::path::{Path, PathBuf};

/// How the producer keeps its interval.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum PacingArg {
    /// On a fixed schedule: lateness is measured and caught up
    #[default]
    Schedule,
    /// An interval after each publication, as perf-workshop: its own stalls hide messages
    Ancestor,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// There is one
    On,
    /// There is none
    Off,
}

/// How messages travel.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum ViaArg {
    /// Over a ring buffer in shared memory
    #[default]
    Ring,
    /// As UDP datagrams over the loopback device
    Loopback,
    /// As datagrams of a pair of Unix sockets
    Unix,
    /// As UDP datagrams between two networks that exist for this recording alone (root)
    Veth,
}

/// Where the journal goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalArg {
    /// Its file; kept with the run if there is none.
    pub file: Option<PathBuf>,
    pub writing: JournalWriting,
}

/// A report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportArg {
    /// A table of each kind of time
    Long,
    /// A line of each: min, mean, 50, 90, 99, 99.9, 99.99, max, count
    Short,
    /// Two files of each with the whole histogram: .hgrm and .hlog
    Detailed,
}

/// Arguments of `workshop`: those of `record pipeline`, by the letters and names that perf-workshop has.
#[derive(Args, Debug)]
#[command(
    mut_arg("message_size", |arg| arg.short('l')),
    mut_arg("period", |arg| arg.long("interval")),
    mut_arg("ring", |arg| arg.short('b')),
    mut_arg("input", |arg| arg.short('f')),
    mut_arg("duration", |arg| arg.short(None)),
    mut_arg("iterations", |arg| arg.short('i')),
    mut_arg("warmup_iterations", |arg| arg.short('w')),
    mut_arg("records", |arg| arg.short('n')),
    mut_arg("properties", |arg| arg.short('o')),
    mut_arg("spinners", |arg| arg.short('s')),
    mut_arg("journal", |arg| arg.short('j')),
    mut_arg("report", |arg| arg.short('r').help("What to print; may be repeated [default: long]")),
    mut_arg("files", |arg| arg.short('d').long("output")),
    mut_arg("label", |arg| arg.short('t')),
    mut_arg("threshold", |arg| arg.short(None).long("slow-above")),
    mut_arg("interval", |arg| arg.long("reporting")),
    mut_arg("output", |arg| arg.short(None).long("to")),
    after_help = "Letters are perf-workshop's. With -i, -w or -n, -i iterations of -n records are sent, \
                  the first -w of them as warm-up. Its -s, threads that spin to disturb the others, is \
                  left out: to measure under load, start the load beside it; selftest injects \
                  disturbances that are known. The same by jitterscope's own letters: record pipeline."
)]
pub struct WorkshopArgs {
    #[command(flatten)]
    pub all: PipelineArgs,
}

/// Arguments of `record pipeline`.
#[derive(Args, Debug)]
pub struct PipelineArgs {
    /// Bytes of a record
    #[arg(long, default_value = "64", value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1 << 20), help_heading = "Messages")]
    pub message_size: u32,
    /// Time between publications; 0s sends as fast as the ring takes them
    #[arg(long, default_value = "10us", value_name = "TIME", value_parser = between, help_heading = "Messages")]
    pub period: Nanos,
    /// Publications in a second, in place of that time
    #[arg(long, value_name = "N", conflicts_with = "period", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000), help_heading = "Messages")]
    pub rate: Option<u64>,
    /// How that time is kept
    #[arg(
        long,
        value_enum,
        default_value = "schedule",
        value_name = "HOW",
        help_heading = "Messages"
    )]
    pub pacing: PacingArg,
    /// How messages travel: through shared memory or through the kernel
    #[arg(
        long,
        value_enum,
        default_value = "ring",
        value_name = "WAY",
        help_heading = "Messages"
    )]
    pub via: ViaArg,
    /// Slots of the ring, a power of two; through the kernel at most as many are on the way as sockets have
    /// room for
    #[arg(long, default_value = "16384", value_name = "SLOTS", value_parser = ring, help_heading = "Messages")]
    pub ring: u64,
    /// Send the records of this file [default: random ones, made on first use]
    #[arg(long, value_name = "FILE", help_heading = "Messages")]
    pub input: Option<PathBuf>,

    /// How long to measure
    #[arg(long, short, default_value = "10s", value_name = "TIME", value_parser = some_duration, help_heading = "Length")]
    pub duration: Nanos,
    /// How many messages to measure, in place of --duration
    #[arg(long, value_name = "N", conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Length")]
    pub messages: Option<u64>,
    /// Iterations over the input, warm-up included [default: 20 with one of the two below]
    #[arg(long, value_name = "N", conflicts_with_all = ["duration", "messages"], value_parser = clap::value_parser!(u64).range(1..), help_heading = "Length")]
    pub iterations: Option<u64>,
    /// Iterations of the warm-up [default: 10 with --iterations or --records, half of the former at most]
    #[arg(long, value_name = "N", conflicts_with_all = ["duration", "messages", "warmup"], help_heading = "Length")]
    pub warmup_iterations: Option<u64>,
    /// Records in an iteration [default: 10000 with one of the two above]
    #[arg(long, value_name = "N", conflicts_with_all = ["duration", "messages"], value_parser = clap::value_parser!(u64).range(1..), help_heading = "Length")]
    pub records: Option<u64>,
    /// How long to send before what counts
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = duration, help_heading = "Length")]
    pub warmup: Nanos,
    /// Pause between warm-up and measurement
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = duration, help_heading = "Length")]
    pub pause: Nanos,

    /// Whether there is a journaller [default: on, or as the properties file says]
    #[arg(long, value_enum, value_name = "SWITCH", help_heading = "Threads")]
    pub journaller: Option<Switch>,
    /// Producer and accumulator alone: fits two CPUs
    #[arg(long, conflicts_with_all = ["journaller", "journal", "journaller_cpu", "journaller_priority"], help_heading = "Threads")]
    pub two_thread: bool,
    /// The producer's CPU
    #[arg(long, value_name = "CPU", help_heading = "Threads")]
    pub producer_cpu: Option<u32>,
    /// The accumulator's CPU
    #[arg(long, value_name = "CPU", help_heading = "Threads")]
    pub accumulator_cpu: Option<u32>,
    /// The journaller's CPU
    #[arg(long, value_name = "CPU", help_heading = "Threads")]
    pub journaller_cpu: Option<u32>,
    /// All threads in the class SCHED_FIFO at this priority
    #[arg(long, value_name = "1-99", value_parser = clap::value_parser!(u32).range(1..=99), help_heading = "Threads")]
    pub priority: Option<u32>,
    /// The producer's, in place of --priority
    #[arg(long, value_name = "1-99", value_parser = clap::value_parser!(u32).range(1..=99), help_heading = "Threads")]
    pub producer_priority: Option<u32>,
    /// The accumulator's, in place of --priority
    #[arg(long, value_name = "1-99", value_parser = clap::value_parser!(u32).range(1..=99), help_heading = "Threads")]
    pub accumulator_priority: Option<u32>,
    /// The journaller's, in place of --priority
    #[arg(long, value_name = "1-99", value_parser = clap::value_parser!(u32).range(1..=99), help_heading = "Threads")]
    pub journaller_priority: Option<u32>,
    /// perf-workshop's properties file, made when it is not there; flags win over it
    #[arg(long, value_name = "FILE", help_heading = "Threads")]
    pub properties: Option<PathBuf>,
    /// perf-workshop's; refused with a word on what to use
    #[arg(long, hide = true)]
    pub spinners: bool,
    /// Measure even where the machine is too small for the threads
    #[arg(long, help_heading = "Threads")]
    pub force: bool,

    /// The journal's file, overwritten [default: kept with the run]. page-cache, or page-cache:FILE: each
    /// record is written into the page cache, so that waits for write-back are measured
    #[arg(long, value_name = "FILE", value_parser = journal, help_heading = "Output")]
    pub journal: Option<JournalArg>,
    /// What to print, in place of one screen; may be repeated
    #[arg(
        long,
        value_enum,
        ignore_case = true,
        value_name = "FORMAT",
        num_args = 1,
        help_heading = "Output"
    )]
    pub report: Vec<ReportArg>,
    /// Folder of the files of --report detailed
    #[arg(long, default_value = ".", value_name = "DIR", value_parser = folder, help_heading = "Output")]
    pub files: PathBuf,
    /// Name of this configuration, for comparing runs
    #[arg(long, short, default_value = "pipeline", value_name = "NAME", help_heading = "Output", add = crate::completion::labels())]
    pub label: String,
    /// Messages this much after their intended time are slow [default: those above the warm-up's 98 %]
    #[arg(long, short, value_name = "TIME", value_parser = some_duration, help_heading = "Output")]
    pub threshold: Option<Nanos>,
    /// Length of a reporting interval
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = reporting, help_heading = "Output")]
    pub interval: Nanos,
    /// Write rows there as they come, beside the run that is stored; may be repeated (see export --help)
    #[arg(short, long, value_name = "TARGET", help_heading = "Output")]
    pub output: Vec<Destination>,
    /// End with code 3 if a message took longer than this from its intended time
    #[arg(long, value_name = "TIME", value_parser = duration, group = Gates::CONDITIONS, help_heading = "Output")]
    pub fail_above: Option<Nanos>,
    #[command(flatten)]
    pub gates: Gates,
    #[command(flatten, next_help_heading = "Output")]
    pub clock: ClockArgs,
    /// Only measure: record no kernel events, name nobody
    #[arg(long, help_heading = "Output")]
    pub no_trace: bool,
    /// Trace buffer of each CPU of the pipeline
    #[arg(long, default_value = "8MiB", value_name = "SIZE", value_parser = super::recording_args::trace_buffer, help_heading = "Output")]
    pub trace_buffer: u64,
    /// Raw trace to keep with the run; beyond it only what lies around the worst messages
    #[arg(long, default_value = "64MiB", value_name = "SIZE", value_parser = size, help_heading = "Output")]
    pub trace_limit: u64,
    /// Print all that is known, on as many lines as it takes
    #[arg(long)]
    pub full: bool,
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Say nothing on stderr but errors
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

impl PipelineArgs {
    /// The requested number of messages or time.
    pub fn schedule(&self) -> ScheduleChoice {
        ScheduleChoice {
            iterations: self.iterations,
            warm_up_iterations: self.warmup_iterations,
            records: self.records,
            messages: self.messages,
            duration: self.duration,
            warm_up: self.warmup,
        }
    }
}

fn between(text: &str) -> Result<Nanos, String> {
    match duration(text)? {
        Nanos(60_000_000_001..) => Err("must be at most 1m".into()),
        some => Ok(some),
    }
}

/// In the front, `-d` is the ancestor's folder; elsewhere it is a duration.
fn folder(text: &str) -> Result<PathBuf, String> {
    if duration(text).is_ok() && !Path::new(text).is_dir() {
        return Err(format!(
            "is a length of time, not the folder of files that is meant here: write --duration {text} (or ./{text} \
             for the folder)"
        ));
    }
    Ok(text.into())
}

/// A file, or `page-cache` with or without one; a file of that name is `./page-cache`.
fn journal(text: &str) -> Result<JournalArg, String> {
    const PAGE_CACHE: &str = "page-cache";
    let (file, writing) = match text.strip_prefix(PAGE_CACHE) {
        Some("") => (None, JournalWriting::PageCache),
        Some(file) if let Some(file) = file.strip_prefix(':') => {
            (Some(file), JournalWriting::PageCache)
        }
        _ => (Some(text), JournalWriting::Mapped),
    };
    if file == Some("") {
        return Err(format!(
            "names no file: write {PAGE_CACHE} to keep it with the run"
        ));
    }
    Ok(JournalArg {
        file: file.map(PathBuf::from),
        writing,
    })
}

fn reporting(text: &str) -> Result<Nanos, String> {
    match duration(text)? {
        Nanos(0..=999_999) => Err("must be at least 1ms".into()),
        some => Ok(some),
    }
}

fn ring(text: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(slots) if slots.is_power_of_two() && (2..=1 << 26).contains(&slots) => Ok(slots),
        _ => Err("must be a power of two from 2 to 67108864, for example 16384".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use jitterscope_recording::pipeline::{PipelineLength, Schedule};

    /// The number of records of a generated input, and of warm-up messages without an interval.
    const INPUT_RECORDS: u64 = 10_000;
    const UNPACED_WARM_UP: u64 = 1_000_000;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: WorkshopArgs,
    }

    fn of(line: &str) -> Result<(PipelineLength, u64, u64), String> {
        let words = std::iter::once("pipeline").chain(line.split_whitespace());
        let args = Command::try_parse_from(words)
            .map_err(|error| error.to_string())?
            .args
            .all;
        let interval = args
            .rate
            .map_or(args.period, |rate| Nanos(1_000_000_000 / rate));
        let Schedule {
            length,
            warm_up_messages,
            records,
        } = args
            .schedule()
            .plan(interval)
            .map_err(|error| error.to_string())?;
        Ok((length, warm_up_messages, records))
    }

    #[test]
    fn lengths_are_the_ancestors_where_its_letters_are_used() {
        let script = of("-i 2500 -w 300 -n 4000 -r DETAILED -r LONG");
        assert_eq!(
            script,
            Ok((PipelineLength::Messages(2200 * 4000), 300 * 4000, 4000))
        );
        assert_eq!(
            of("-i 20"),
            Ok((PipelineLength::Messages(100_000), 100_000, 10_000))
        );
        assert_eq!(of("-n 7"), Ok((PipelineLength::Messages(70), 70, 7)));
        assert_eq!(
            of("-i 3"),
            Ok((PipelineLength::Messages(20_000), 10_000, 10_000))
        );
        assert_eq!(
            of("-w 0 -i 1 -n 1"),
            Ok((PipelineLength::Messages(1), 0, 1))
        );
        assert!(of("-i 2 -w 3").is_err() && of("-i 18446744073709551615 -w 0 -n 2").is_err());
        for clash in [
            "-i 2 --duration 1s",
            "-n 5 --messages 5",
            "-w 2 --warmup 1s",
            "--rate 5 --interval 1s",
        ] {
            assert!(
                of(clash).unwrap_err().contains("cannot be used with"),
                "{clash}"
            );
        }
    }

    #[test]
    fn otherwise_they_are_times_or_counts() {
        let second = PipelineLength::Time(Nanos(1_000_000_000));
        assert_eq!(of("--duration 1s"), Ok((second, 100_000, INPUT_RECORDS)));
        assert_eq!(
            of("--duration 1s --rate 1000 --warmup 2s"),
            Ok((second, 2_000, INPUT_RECORDS))
        );
        assert_eq!(
            of("--duration 1s --interval 0s"),
            Ok((second, UNPACED_WARM_UP, INPUT_RECORDS))
        );
        assert_eq!(
            of("--messages 5 --interval 0s --warmup 0s"),
            Ok((PipelineLength::Messages(5), 0, INPUT_RECORDS))
        );
    }

    #[derive(Parser)]
    struct Plain {
        #[command(flatten)]
        args: PipelineArgs,
    }

    #[test]
    fn letters_are_those_of_record_and_in_the_front_the_ancestors() {
        let own = Plain::try_parse_from([
            "x",
            "-d",
            "3s",
            "-l",
            "A",
            "-t",
            "50us",
            "-o",
            "csv://a",
            "--interval",
            "2s",
        ]);
        let own = own.unwrap().args;
        assert_eq!(
            (own.duration, own.label.as_str()),
            (Nanos(3_000_000_000), "A")
        );
        assert_eq!((own.threshold, own.output.len()), (Some(Nanos(50_000)), 1));
        assert_eq!(
            (own.interval, own.period),
            (Nanos(2_000_000_000), Nanos(10_000))
        );
        let line = "x -d files -l 128 -t A -o p --interval 20us --reporting 2s --slow-above 50us --to csv://a -j j";
        let front = Command::try_parse_from(line.split(' ')).unwrap().args.all;
        assert_eq!(
            (
                front.files.to_str(),
                front.message_size,
                front.label.as_str()
            ),
            (Some("files"), 128, "A")
        );
        assert_eq!(
            (front.period, front.interval),
            (Nanos(20_000), Nanos(2_000_000_000))
        );
        assert_eq!(
            (front.threshold, front.output.len()),
            (Some(Nanos(50_000)), 1)
        );
        assert!(front.properties.is_some() && front.journal.is_some());
        assert!(Plain::try_parse_from(["x", "-b", "16"]).is_err());
    }

    #[test]
    fn a_journal_is_a_file_or_goes_through_the_page_cache() {
        let of = |text| journal(text).map(|of| (of.file, of.writing));
        let file = |name: &str| Some(PathBuf::from(name));
        let (mapped, page_cache) = (JournalWriting::Mapped, JournalWriting::PageCache);
        assert_eq!(of("a"), Ok((file("a"), mapped)));
        assert_eq!(of("page-cache"), Ok((None, page_cache)));
        assert_eq!(of("page-cache:/a:b"), Ok((file("/a:b"), page_cache)));
        assert_eq!(of("./page-cache"), Ok((file("./page-cache"), mapped)));
        assert_eq!(of("page-caches"), Ok((file("page-caches"), mapped)));
        assert!(of("page-cache:").is_err() && of("").is_err());
    }

    #[test]
    fn rings_are_powers_of_two() {
        assert_eq!((ring("2"), ring("524288")), (Ok(2), Ok(524_288)));
        for bad in ["0", "1", "3", "-4", "134217728", "16k", ""] {
            assert!(ring(bad).unwrap_err().contains("power of two"), "{bad}");
        }
    }
}
