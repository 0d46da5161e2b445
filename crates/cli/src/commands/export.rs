//! `export`: a stored run in the formats of other tools.

use crate::exit::{Exit, UsageError};
use crate::output;
use crate::places::Places;
use crate::redact::Redact;
use clap::Args;
use jitterscope_export::{Delivery, ExportError, Target, distinct, export_redacted, export_run};
use jitterscope_model::SCHEMA_VERSION;
use jitterscope_store::{RunReader, resolve};
use serde_json::json;

/// What targets there are.
pub const TARGETS: &str = "\
Targets:
  csv://FILE                     stalls; ?rows=intervals or ?rows=series for the intervals. With
                                 ?formulas=escape a spreadsheet shows names like =1+1 as text
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
    #[command(flatten)]
    pub redact: Redact,
    /// Say nothing on stderr but errors
    #[arg(long, short)]
    pub quiet: bool,
    /// Print JSON on what became of each target
    #[arg(long)]
    pub json: bool,
}

/// Runs it.
///
/// # Errors
/// There is no such run, or a target cannot be opened or written.
pub fn run(args: &ExportArgs, places: &Places) -> anyhow::Result<Exit> {
    places_apart(&args.to)?;
    if args.json && args.to.iter().any(Target::is_stdout) {
        return Err(UsageError("--json: standard output is a target; name a file for it".into()).into());
    }
    let run = RunReader::open(&resolve(&places.runs()?, &args.run)?)?;
    for remark in args.to.iter().filter_map(Target::remark).filter(|_| !args.quiet) {
        output::talk(remark);
    }
    let export = if args.redact.on { export_redacted } else { export_run };
    let delivered = export(&run, &args.to).map_err(told_by_target)?;
    if args.json {
        output::json(&deliveries_json(&args.to, &delivered, args.redact))?;
    }
    let mut exit = Exit::Ok;
    for (target, delivery) in args.to.iter().zip(&delivered) {
        if delivery.lost > 0 {
            exit = Exit::Failed;
        }
        if !(args.quiet || args.json) || delivery.lost > 0 {
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
    let counted = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut text = match target {
        Target::Parquet { .. } => format!("{target}: {}", counted(*delivered, "table")),
        _ if *confirmed => format!("{target}: {}", counted(*delivered, "row")),
        _ => format!("{target}: {} sent, whether they arrived is unknown", counted(*delivered, "row")),
    };
    if *lost > 0 {
        text.push_str(&format!(", {lost} lost"));
    }
    if *retries > 0 {
        let times = if *retries == 1 { "delivery" } else { "deliveries" };
        text.push_str(&format!(", {retries} {times} repeated"));
    }
    if let Some(problem) = problem {
        text.push_str(&format!(" ({problem})"));
    }
    text
}

/// The format alone, without the place.
fn scheme(target: &Target) -> String {
    let text = target.to_string();
    text.split_once("://").map_or_else(String::new, |(scheme, _)| scheme.to_owned())
}

fn deliveries_json(targets: &[Target], delivered: &[Delivery], redact: Redact) -> serde_json::Value {
    let of = |(target, delivery): (&Target, &Delivery)| {
        let Delivery { delivered, lost, retries, confirmed, problem } = delivery;
        json!({
            "target": if redact.on { scheme(target) } else { target.to_string() },
            "delivered": delivered,
            "lost": lost,
            "retries": retries,
            "confirmed": confirmed,
            "problem": problem.as_ref().filter(|_| !redact.on),
        })
    };
    let targets: Vec<_> = targets.iter().zip(delivered).map(of).collect();
    json!({ "schema_version": SCHEMA_VERSION, "targets": targets })
}
