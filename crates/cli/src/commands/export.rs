//! `export`: a stored run in the formats of other tools.

use super::outputs::{delivered_text, places_apart, remarks, told_by_target};
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::places::Places;
use crate::redact::Redact;
use clap::Args;
use jitterscope_export::{Destination, export_redacted, export_run};
use jitterscope_model::{Delivery, SCHEMA_VERSION};
use jitterscope_store::{RunReader, resolve};
use jitterscope_view::doubts_text;
use serde::Serialize;

/// Arguments of `export`.
#[derive(Args, Debug)]
#[command(after_help = jitterscope_export::help())]
pub struct ExportArgs {
    /// The run: latest, an id, a label, a folder
    #[arg(default_value = "latest", add = crate::completion::runs())]
    pub run: String,
    /// Where to, and in which format; may be repeated
    #[arg(long = "to", value_name = "TARGET", required = true)]
    pub to: Vec<Destination>,
    #[command(flatten)]
    pub redact: Redact,
    /// Say nothing on stderr but errors
    #[arg(long, short)]
    pub quiet: bool,
    /// Print JSON on what became of each target
    #[arg(long)]
    pub json: bool,
}

/// Runs `export`.
///
/// # Errors
/// The run does not exist, or a target cannot be opened or written.
pub fn run(args: &ExportArgs, places: &Places) -> anyhow::Result<Exit> {
    places_apart(&args.to)?;
    if args.json && args.to.iter().any(Destination::is_stdout) {
        return Err(
            UsageError("--json: standard output is a target; name a file for it".into()).into(),
        );
    }
    let run = RunReader::open(&resolve(&places.runs()?, &args.run)?)?;
    remarks(&args.to, args.quiet);
    // Some formats have no field for doubts.
    let doubts = run.manifest().doubts();
    if !doubts.is_empty() && !args.quiet {
        let why = doubts_text(&doubts);
        output::talk(format_args!(
            "what this run says of culprits does not hold: {why}"
        ));
    }
    let export = if args.redact.on {
        export_redacted
    } else {
        export_run
    };
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
            output::talk(delivered_text(target, delivery));
        }
    }
    Ok(exit)
}

#[derive(Serialize)]
struct DeliveriesJson<'a> {
    schema_version: u32,
    targets: Vec<DeliveryJson<'a>>,
}

#[derive(Serialize)]
struct DeliveryJson<'a> {
    target: String,
    delivered: u64,
    lost: u64,
    retries: u64,
    confirmed: bool,
    problem: Option<&'a str>,
}

fn deliveries_json<'a>(
    targets: &[Destination],
    delivered: &'a [Delivery],
    redact: Redact,
) -> DeliveriesJson<'a> {
    let of = |(target, delivery): (&Destination, &'a Delivery)| {
        let Delivery {
            delivered,
            lost,
            retries,
            confirmed,
            problem,
        } = delivery;
        DeliveryJson {
            target: if redact.on {
                target.scheme().to_owned()
            } else {
                target.to_string()
            },
            delivered: *delivered,
            lost: *lost,
            retries: *retries,
            confirmed: *confirmed,
            problem: problem.as_deref().filter(|_| !redact.on),
        }
    };
    let targets = targets.iter().zip(delivered).map(of).collect();
    DeliveriesJson {
        schema_version: SCHEMA_VERSION,
        targets,
    }
}
