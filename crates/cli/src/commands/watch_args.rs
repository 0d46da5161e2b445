//! The arguments of `watch`.

use super::measure_args::EventsArg;
use super::recording_args::trace_buffer;
use super::watch_metrics::MetricsAddress;
use crate::completion;
use crate::reading::ReadingArgs;
use crate::units::{duration, size, some_duration};
use clap::{Args, Subcommand, ValueEnum};
use jitterscope_analyze::gate::{Watched, parse_watched};
use jitterscope_model::{CpuList, Nanos};
use jitterscope_recording::watch::{Action, actions};
use jitterscope_source::Moment;
use std::path::PathBuf;

/// How a watch measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WatchProbe {
    /// Spin where all CPUs are isolated and --for names nobody, else none
    Auto,
    /// Read the clock back to back: the CPUs are taken from everybody else
    Spin,
    /// Watch who takes time from the CPUs' owners
    None,
}

/// A list of actions.
#[derive(Clone, Debug)]
pub struct Actions(pub Vec<Action>);

/// A list of conditions from one argument.
#[derive(Clone, Debug)]
pub struct WatchedConditions(pub Vec<Watched>);

/// What another terminal asks of a running watch.
#[derive(Subcommand, Debug)]
pub enum WatchAsk {
    /// Have a running watch save a moment, and print its run
    Save(SaveArgs),
    /// Show running watches
    Status(StatusArgs),
    /// End a running watch; what it saved stays
    Stop(OneArgs),
}

/// Which watch.
#[derive(Args, Debug)]
pub struct OneArgs {
    /// The watch of this CPU [default: the one that runs]
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
}

/// Arguments of `watch save`.
#[derive(Args, Debug)]
pub struct SaveArgs {
    #[command(flatten)]
    pub one: OneArgs,
    /// The moment, within the kept time: 03:12:07, 2026-11-26T03:12:07Z, an epoch [default: now]
    #[arg(long, value_name = "TIME")]
    pub at: Option<Moment>,
}

/// Arguments of `watch status`.
#[derive(Args, Debug)]
pub struct StatusArgs {
    #[command(flatten)]
    pub one: OneArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `watch`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
#[command(
    mut_arg("threshold", |arg| arg.help("The shortest stall [default: 300ns, or what the clock allows if that is more]"))
)]
#[command(after_help = "\
Records without end, keeps the last minutes, and saves an ordinary run of the seconds before and after a trigger: a \
condition, a line on a socket, SIGUSR1, or 'watch save'. report, diff and export work on it. It ends with Ctrl-C or \
'watch stop'. Needs root and tracefs.

  jitterscope watch --cpus 2-5 --save-if 'max>200us'
  jitterscope watch --cpus 1 --for rx-thread --socket /run/rx/jitterscope
  jitterscope watch save --at 03:12:07")]
pub struct WatchArgs {
    #[command(subcommand)]
    pub ask: Option<WatchAsk>,
    /// CPUs to watch: 0-3,5 or 0-31:2, 'all', 'isolated' [default: CPUs that tune isolated, else the isolated ones, else
    /// the highest]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true, add = completion::cpus())]
    pub cpus: Option<CpuList>,
    /// The CPUs' owner: a process id, a thread name, unit:NAME of systemd, pod:UID or cgroup:/PATH [default: on each CPU
    /// the thread that runs most at the start]
    #[arg(long = "for", value_name = "OWNER")]
    pub owner: Option<String>,
    /// How to measure
    #[arg(long, value_enum, default_value = "auto", value_name = "PROBE")]
    pub probe: WatchProbe,
    /// How much history to keep
    #[arg(long, default_value = "10m", value_name = "TIME", value_parser = some_duration)]
    pub keep: Nanos,
    /// How much room it may take; saved runs count separately
    #[arg(long, default_value = "2GiB", value_name = "SIZE", value_parser = size)]
    pub disk: u64,
    /// How much to save before a trigger
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = duration)]
    pub before: Nanos,
    /// How much to save after it
    #[arg(long, default_value = "2s", value_name = "TIME", value_parser = duration)]
    pub after: Nanos,
    /// Save when one of these is met: 'max>200us, culprit(kworker)>1ms/s, stolen>5% over 10s'; may be repeated
    #[arg(long, value_name = "CONDITIONS", value_parser = watched)]
    pub save_if: Vec<WatchedConditions>,
    /// Judge conditions without a time of their own over this long
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = over)]
    pub over: Nanos,
    /// Save when the application writes a line to this Unix socket, which the watch makes
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    pub socket: Option<PathBuf>,
    /// What follows a trigger, in order, until one fails: save, shell=COMMAND, signal=PID, mark, stop, continue
    #[arg(long, default_value = "save", value_name = "ACTIONS", value_parser = actions_of)]
    pub on_trigger: Actions,
    /// Save one moment in this time at most; 'watch save' always saves
    #[arg(long, default_value = "1m", value_name = "TIME", value_parser = duration)]
    pub apart: Nanos,
    /// Save so many moments a day at most
    #[arg(long, default_value = "100", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub daily: u32,
    /// Length of a section of the history [default: a twentieth of --keep, 10s to 1m]
    #[arg(long, value_name = "TIME", value_parser = section)]
    pub section: Option<Nanos>,
    #[command(flatten)]
    pub metrics: MetricsArgs,
    #[command(flatten)]
    pub upload: UploadArgs,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Name of saved runs
    #[arg(long, short, default_value = "watch", value_name = "NAME", add = completion::labels())]
    pub label: String,
    /// Which kernel events to record; each record takes time from the measured CPU
    #[arg(long, value_enum, value_name = "GRAIN", default_value = "all")]
    pub events: EventsArg,
    /// Trace buffer of each watched CPU
    #[arg(long, default_value = "8MiB", value_name = "SIZE", value_parser = trace_buffer)]
    pub trace_buffer: u64,
    /// Say nothing on stderr but errors
    #[arg(long, short)]
    pub quiet: bool,
}

/// Where the metrics of a watch can be read.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricsArgs {
    /// Serve metrics for Prometheus there: 127.0.0.1:9750, or unix:/path
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<MetricsAddress>,
    /// Let other machines read them, if ADDRESS is not this machine's own
    #[arg(long, requires = "metrics")]
    pub metrics_open: bool,
    /// Write metrics to this file for node_exporter: /var/lib/node_exporter/jitterscope.prom
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub metrics_file: Option<PathBuf>,
}

/// Where the hourly sums of a watch go.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct UploadArgs {
    /// Send hourly sums to an object store: s3://BUCKET/PREFIX, gs://, az:// or file:///FOLDER
    #[arg(long, value_name = "URL")]
    pub upload: Option<String>,
    /// The cluster of this host in the store
    #[arg(long, value_name = "NAME", requires = "upload")]
    pub cluster: Option<String>,
    /// Send saved runs, too
    #[arg(long, requires = "upload")]
    pub upload_runs: bool,
}

fn watched(text: &str) -> Result<WatchedConditions, String> {
    parse_watched(text)
        .map(WatchedConditions)
        .map_err(|error| error.to_string())
}

fn actions_of(list: &str) -> Result<Actions, String> {
    actions(list)
        .map(Actions)
        .map_err(|error| error.to_string())
}

fn over(text: &str) -> Result<Nanos, String> {
    match some_duration(text)? {
        Nanos(0..=99_999_999) => Err("must be at least 100ms".into()),
        Nanos(600_000_000_001..) => Err("must be at most 10m".into()),
        some => Ok(some),
    }
}

fn section(text: &str) -> Result<Nanos, String> {
    match some_duration(text)? {
        Nanos(0..=999_999_999) => Err("must be at least 1s".into()),
        Nanos(600_000_000_001..) => Err("must be at most 10m".into()),
        some => Ok(some),
    }
}
