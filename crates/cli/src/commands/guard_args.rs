//! The arguments of `guard`.

use super::diff::percent;
use super::recording_args::trace_buffer;
use crate::reading::ReadingArgs;
use crate::units::size;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Arguments of `guard`.
#[derive(Args, Debug)]
#[command(mut_arg("threshold", |arg| {
    arg.help("The shortest wait or interruption that is kept one by one; sums have them all [default: 50us]")
}))]
#[command(after_help = "\
Starts COMMAND again and again and follows all its threads and children as attach does. Each iteration is a stored \
run, with its time, what its threads lost to others, and who took most. Nothing is subtracted, and no iteration is \
dropped: the headline counts all. Times include the cost of following. Needs root and tracefs. What COMMAND prints \
goes to stderr.

  jitterscope guard -- ./benchmark
  jitterscope guard -n 20 --retry 5 --fail -- ./benchmark --size 1000
  jitterscope guard --export-json times.json --markdown summary.md -- ./benchmark

A COMMAND that fails ends the series and passes its exit code on; what was measured is kept.")]
pub struct GuardArgs {
    /// How often to start COMMAND
    #[arg(long, short = 'n', default_value_t = 10, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub iterations: u32,
    /// Start this and follow it, with the processes that it makes, until all have ended
    #[arg(last = true, required = true, value_name = "COMMAND", num_args = 1..,
          value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<String>,
    /// An iteration is contaminated if others took more than this share of the time in which its threads wanted a CPU
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = percent)]
    pub contaminated_above: f64,
    /// Make up to so many further iterations in place of contaminated ones; all count
    #[arg(long, value_name = "M", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=10_000))]
    pub retry: u32,
    /// End with code 3 if a contaminated iteration remains, with code 4 if that is unknown of one
    #[arg(long)]
    pub fail: bool,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Name of this series; its runs get it as label
    #[arg(long, short, default_value = "guard", value_name = "NAME", add = crate::completion::labels())]
    pub label: String,
    /// Trace buffer of each CPU
    #[arg(long, default_value = "8MiB", value_name = "SIZE", value_parser = trace_buffer)]
    pub trace_buffer: u64,
    /// Raw trace to keep with each iteration; beyond it only what lies around the worst stalls
    #[arg(long, default_value = "64MiB", value_name = "SIZE", value_parser = size)]
    pub trace_limit: u64,
    /// Write the times to this file as hyperfine's --export-json does
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub export_json: Option<PathBuf>,
    /// Write median and range to this file in Bencher's metric format, under the label
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub bencher: Option<PathBuf>,
    /// Write the outcome to this file as Markdown, for the summary page of a build
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub markdown: Option<PathBuf>,
    /// Print a line of every iteration, on as many lines as it takes
    #[arg(long)]
    pub full: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Say nothing on stderr but errors
    #[arg(long, short)]
    pub quiet: bool,
}
