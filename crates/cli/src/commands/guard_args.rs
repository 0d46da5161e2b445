//! The arguments of `guard`.

use super::diff::percent;
use super::guard_results::{Results, results};
use super::recording_args::trace_buffer;
use crate::reading::ReadingArgs;
use crate::units::{size, some_duration};
use clap::{Args, ValueHint};
use jitterscope_model::Nanos;
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
  jitterscope guard -n 20 --wait-quiet 30s --retry 5 --fail -- ./benchmark --size 1000
  jitterscope guard --export-json times.json --markdown summary.md -- ./benchmark
  jitterscope guard --baseline times.json -- ./benchmark
  jitterscope guard -n 3 --results criterion -- cargo bench
  jitterscope guard -n 3 --results pytest-benchmark=b.json -- pytest --benchmark-json b.json

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
    /// Before each iteration, wait up to this long until the CPUs that COMMAND may use are idle for 95 % of half a
    /// second; then make it in any case, and mark it if they are not
    #[arg(long, value_name = "TIME", value_parser = some_duration)]
    pub wait_quiet: Option<Nanos>,
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
    /// Read what a tool within COMMAND measures, after each iteration: hyperfine=FILE (its --export-json),
    /// pytest-benchmark=FILE (its --benchmark-json), criterion[=DIR] (target/criterion)
    #[arg(long, value_name = "TOOL=PATH", value_parser = results)]
    pub results: Option<Results>,
    /// Compare with the times in this file of hyperfine's or an earlier guard's --export-json
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub baseline: Option<PathBuf>,
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
