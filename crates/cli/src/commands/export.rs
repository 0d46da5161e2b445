//! `export`: a stored run in the formats of other tools.

use crate::exit::{Exit, UsageError};
use crate::output;
use crate::places::Places;
use clap::Args;
use jitterscope_export::{Delivery, ExportError, Target, distinct, export_run};
use jitterscope_store::{RunReader, resolve};

/// What targets there are.
pub const TARGETS: &str = "\
Targets:
  csv://FILE                     stalls; ?rows=intervals or ?rows=series for the intervals
  json://FILE                    JSON lines: run, stalls with culprits, intervals, end
  hlog://FILE                    HdrHistogram V2 interval log, one tag a CPU, values in ns
  hgrm://FILE                    percentiles of all stalls in ns; ?cpu=N for one CPU. Of a pipeline its
                                 accumulator's transit, ?of=TAG for another of its histograms
  parquet://FOLDER               the run's own tables
  influx://HOST:PORT             InfluxDB 1, line protocol over UDP
  influx+http://HOST:PORT/?db=NAME               InfluxDB 1, with user= if wanted
  influx2+http://HOST:PORT/?org=ORG&bucket=NAME  InfluxDB 2
  influx3+http://HOST:PORT/?db=NAME              InfluxDB 3
+https for +http where wanted; - as FILE is standard output. Passwords are taken from password_file=
or INFLUX_PASSWORD, tokens from token_file= or INFLUX_TOKEN, certificates from the system's store or
SSL_CERT_FILE.";

/// Arguments of `export`.
#[derive(Args, Debug)]
#[command(after_help = TARGETS)]
pub struct ExportArgs {
    /// The run: latest, an id, a label, a folder
    #[arg(default_value = "latest")]
    pub run: String,
    /// Where to, and in which format; may be repeated
    #[arg(long = "to", value_name = "TARGET", required = true)]
    pub to: Vec<Target>,
    /// Say nothing on stderr but errors
    #[arg(long, short)]
    pub quiet: bool,
}

/// Runs it.
///
/// # Errors
/// There is no such run, or a target cannot be opened or written.
pub fn run(args: &ExportArgs, places: &Places) -> anyhow::Result<Exit> {
    places_apart(&args.to)?;
    let run = RunReader::open(&resolve(&places.runs()?, &args.run)?)?;
    for remark in args.to.iter().filter_map(Target::remark).filter(|_| !args.quiet) {
        output::talk(remark);
    }
    let delivered = export_run(&run, &args.to).map_err(told_by_target)?;
    let mut exit = Exit::Ok;
    for (target, delivery) in args.to.iter().zip(&delivered) {
        if delivery.lost > 0 {
            exit = Exit::Failed;
        }
        if !args.quiet || delivery.lost > 0 {
            output::talk(told(target, delivery));
        }
    }
    Ok(exit)
}

/// Two results in one file, or on one stdout, would be none.
pub fn places_apart(targets: &[Target]) -> Result<(), UsageError> {
    if targets.iter().filter(|target| target.is_stdout()).count() > 1 {
        return Err(UsageError("only one target can be standard output".into()));
    }
    distinct(targets).map_err(|error| UsageError(error.to_string()))
}

/// The error of a target: a wrong argument, or a failure.
pub fn told_by_target(error: ExportError) -> anyhow::Error {
    if error.is_usage() { UsageError(error.to_string()).into() } else { error.into() }
}

/// What became of a target's rows, in a line.
pub fn told(target: &Target, delivery: &Delivery) -> String {
    let Delivery { delivered, lost, retries, confirmed, problem } = delivery;
    let mut text = match target {
        Target::Parquet { .. } => format!("{target}: {delivered} tables"),
        _ if *confirmed => format!("{target}: {delivered} rows"),
        _ => format!("{target}: {delivered} rows sent (whether they arrived is unknown)"),
    };
    if *lost > 0 {
        text.push_str(&format!(", {lost} lost"));
    }
    if *retries > 0 {
        text.push_str(&format!(", {retries} deliveries repeated"));
    }
    if let Some(problem) = problem {
        text.push_str(&format!(" ({problem})"));
    }
    text
}
