//! Targets: where rows go in addition to the stored run, during and after a recording.

use crate::exit::{Exit, UsageError};
use crate::output;
use jitterscope_export::{Destination, Pace, distinct};
use jitterscope_model::{Delivery, SinkError};
use jitterscope_recording::{Delivered, Output};

/// Refuses two results in one file, or on stdout.
pub fn places_apart(targets: &[Destination]) -> Result<(), UsageError> {
    if targets.iter().filter(|target| target.is_stdout()).count() > 1 {
        return Err(UsageError("only one target can be standard output".into()));
    }
    distinct(targets).map_err(|error| UsageError(error.to_string()))
}

/// Checks the targets of a recording whose report goes to standard output, and prints their remarks.
pub fn beside_a_report(targets: &[Destination], quiet: bool) -> Result<(), UsageError> {
    places_apart(targets)?;
    if let Some(target) = targets.iter().find(|target| target.is_stdout()) {
        return Err(UsageError(format!(
            "{target}: standard output has the report; name a file"
        )));
    }
    remarks(targets, quiet);
    Ok(())
}

/// Prints the remarks on targets.
pub fn remarks(targets: &[Destination], quiet: bool) {
    for remark in targets
        .iter()
        .filter_map(Destination::remark)
        .filter(|_| !quiet)
    {
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

/// Reports the outcome of each output of a recording; losses even if quiet.
pub fn tell(targets: &[Destination], delivered: &[Delivered], quiet: bool) -> Exit {
    let mut exit = Exit::Ok;
    for (
        target,
        Delivered {
            delivery, error, ..
        },
    ) in targets.iter().zip(delivered)
    {
        let lost = delivery.lost > 0 || error.is_some();
        if lost {
            exit = Exit::Failed;
        }
        if lost || !quiet {
            tell_delivered(target, delivery);
        }
    }
    exit
}

/// Prints the outcome of a target, and what its format cannot show.
pub fn tell_delivered(target: &Destination, delivery: &Delivery) {
    output::talk(delivered_text(target, delivery));
    for remark in &delivery.remarks {
        output::talk(format_args!("{target}: {remark}"));
    }
}

/// The error of a target: a wrong argument, or a failure.
pub fn told_by_target(error: SinkError) -> anyhow::Error {
    if error.is_usage() {
        UsageError(error.to_string()).into()
    } else {
        error.into()
    }
}

/// The outcome of a target's rows, in a line.
fn delivered_text(target: &Destination, delivery: &Delivery) -> String {
    let Delivery {
        delivered,
        lost,
        retries,
        confirmed,
        problem,
        remarks: _,
    } = delivery;
    let counted = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut text = format!("{target}: {}", counted(*delivered, target.unit()));
    if !confirmed {
        text.push_str(" sent, whether they arrived is unknown");
    }
    if *lost > 0 {
        text.push_str(&format!(", {lost} lost"));
    }
    if *retries > 0 {
        let times = if *retries == 1 {
            "delivery"
        } else {
            "deliveries"
        };
        text.push_str(&format!(", {retries} {times} repeated"));
    }
    if let Some(problem) = problem {
        text.push_str(&format!(" ({problem})"));
    }
    text
}
