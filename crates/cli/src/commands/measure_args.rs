//! The arguments of recordings of CPUs.

use super::gate::Gates;
use super::recording_args::KeptArgs;
use crate::completion;
use crate::profile::{self, Profile};
use crate::reading::ReadingArgs;
use crate::units::{duration, some_duration};
use clap::{Args, ValueEnum};
use jitterscope_model::{CpuList, EventGrain, Nanos};

/// Which kernel events to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EventsArg {
    /// All that name who had a CPU, and what they did with it
    All,
    /// Only who had it and by which interrupt: no timer functions, work items, functions called by other CPUs
    Coarse,
}

impl EventsArg {
    /// The value for the recording.
    pub fn grain(self) -> EventGrain {
        match self {
            EventsArg::All => EventGrain::All,
            EventsArg::Coarse => EventGrain::Coarse,
        }
    }
}

/// What every recording of CPUs takes.
#[derive(Args, Debug)]
pub struct MeasureArgs {
    /// CPUs to measure: 0-3,5 or 0-31:2, 'all', 'isolated' [default: CPUs that tune isolated, else the isolated ones,
    /// else the highest]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true, add = completion::cpus())]
    pub cpus: Option<CpuList>,
    /// Limit, probe and settings for one kind of work: servo-1khz, audio-48k-64, vran-slot, trading, cloud-vm, ... or a
    /// file; 'list' prints all. Other options take precedence. The report begins with the verdict in one sentence, and
    /// the command ends with 3 if the limit is exceeded
    #[arg(long, value_name = "NAME|FILE", value_parser = profile::load, add = completion::profiles())]
    pub profile: Option<Profile>,
    /// How long to measure
    #[arg(long, short, default_value = "10s", value_name = "TIME", value_parser = some_duration)]
    pub duration: Nanos,
    /// Make this many runs, one after the other, all with the same label: runs show how runs differ
    #[arg(long, value_name = "N", default_value = "1", hide_default_value = true,
        value_parser = clap::value_parser!(u32).range(1..=1000), conflicts_with_all = ["json", "output"])]
    pub repeat: u32,
    /// How long to measure at least before that; this time does not count [default: 50ms]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub warmup: Option<Nanos>,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Length of a reporting interval [default: a sixtieth of the duration, 100ms to 1s]
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub interval: Option<Nanos>,
    /// Name of this configuration, for comparing runs [default: the probe]
    #[arg(long, short, value_name = "NAME", add = crate::completion::labels())]
    pub label: Option<String>,
    /// Which kernel events to record; each record takes time from the measured CPU
    #[arg(long, value_enum, value_name = "GRAIN", default_value = "all")]
    pub events: EventsArg,
    #[command(flatten)]
    pub kept: KeptArgs,
    /// End with code 4 unless this source is available (see doctor); may be repeated
    #[arg(long, value_name = "SOURCE")]
    pub require: Vec<String>,
    /// End with code 3 if a stall is longer than this: short for --fail-if 'max>TIME'
    #[arg(long, value_name = "TIME", value_parser = duration, group = Gates::CONDITIONS)]
    pub fail_above: Option<Nanos>,
    /// Print the full report
    #[arg(long)]
    pub full: bool,
    #[command(flatten)]
    pub gates: Gates,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Say nothing on stderr but errors
    #[arg(long, short)]
    pub quiet: bool,
}

/// What a recording with a probe takes as well.
#[derive(Args, Debug)]
pub struct ProbedArgs {
    #[command(flatten)]
    pub all: MeasureArgs,
    /// Measure in the class SCHED_FIFO at this priority
    #[arg(long, value_name = "1-99", value_parser = clap::value_parser!(u32).range(1..=99))]
    pub priority: Option<u32>,
    /// Only measure: record no kernel events, name nobody
    #[arg(long, conflicts_with_all = ["events", "event"])]
    pub no_trace: bool,
    /// Look into this kernel function with all that it calls, as report --stall then shows; 'culprit' for all that the
    /// kernel does for others: work items, softirqs, interrupts. May be repeated
    #[arg(long, value_name = "FUNCTION|culprit", conflicts_with = "no_trace")]
    pub graph: Vec<String>,
}

/// What the wake-up probe takes beyond [`ProbedArgs`].
#[derive(Args, Debug)]
pub struct SleepArgs {
    /// Time between deadlines, 50us to 1s
    #[arg(long, default_value = "1ms", value_name = "TIME", value_parser = period)]
    pub period: Nanos,
    /// Keep the CPUs out of deep idle states (/dev/cpu_dma_latency) while measuring
    #[arg(long)]
    pub hold_latency: bool,
    /// Measure an idle CPU too, to compare with
    #[arg(long)]
    pub idle_control: bool,
}

fn interval(text: &str) -> Result<Nanos, String> {
    match duration(text)? {
        Nanos(0..=999_999) => Err("must be at least 1ms".into()),
        some => Ok(some),
    }
}

fn period(text: &str) -> Result<Nanos, String> {
    match duration(text)? {
        Nanos(0..=49_999) => Err("must be at least 50us".into()),
        Nanos(1_000_000_001..) => Err("must be at most 1s".into()),
        some => Ok(some),
    }
}
