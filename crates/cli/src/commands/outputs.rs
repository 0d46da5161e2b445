//! Targets: where rows go beside the stored run, while it is recorded and after.

use crate::exit::{Exit, UsageError};
use crate::output;
use jitterscope_export::{Destination, Pace, distinct};
use jitterscope_model::{Delivery, SinkError};
use jitterscope_recording::{Delivered, Output};

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

/// Two results in one file, or on one stdout, would be none.
pub fn places_apart(targets: &[Destination]) -> Result<(), UsageError> {
    if targets.iter().filter(|target| target.is_stdout()).count() > 1 {
        return Err(UsageError("only one target can be standard output".into()));
    }
    distinct(targets).map_err(|error| UsageError(error.to_string()))
}

/// Checks the targets of a recording whose report has standard output, and says what must be known of them.
pub fn beside_a_report(targets: &[Destination], quiet: bool) -> Result<(), UsageError> {
    places_apart(targets)?;
    if let Some(target) = targets.iter().find(|target| target.is_stdout()) {
        return Err(UsageError(format!("{target}: standard output has the report; name a file")));
    }
    remarks(targets, quiet);
    Ok(())
}

/// Says what must be known of targets.
pub fn remarks(targets: &[Destination], quiet: bool) {
    for remark in targets.iter().filter_map(Destination::remark).filter(|_| !quiet) {
        output::talk(remark);
    }
}

/// The targets as a recording's outputs.
pub fn of_recording(targets: &[Destination]) -> Vec<Output<'static>> {
    let output = |target: &Destination| {
        let own = target.clone();
        Output::new(target.to_string(), move || Ok(own.open(Pace::Live)?))
    };
    targets.iter().map(output).collect()
}

/// Says what became of each output of a recording: in any case where something was lost.
pub fn tell(targets: &[Destination], delivered: &[Delivered], quiet: bool) -> Exit {
    let mut exit = Exit::Ok;
    for (target, Delivered { delivery, error, .. }) in targets.iter().zip(delivered) {
        let lost = delivery.lost > 0 || error.is_some();
        if lost {
            exit = Exit::Failed;
        }
        if lost || !quiet {
            output::talk(told(target, delivery));
        }
    }
    exit
}

/// The error of a target: a wrong argument, or a failure.
pub fn told_by_target(error: SinkError) -> anyhow::Error {
    if error.is_usage() { UsageError(error.to_string()).into() } else { error.into() }
}

/// What became of a target's rows, in a line.
pub fn told(target: &Destination, delivery: &Delivery) -> String {
    let Delivery { delivered, lost, retries, confirmed, problem } = delivery;
    let counted = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut text = match target {
        Destination::Parquet { .. } => format!("{target}: {}", counted(*delivered, "table")),
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
