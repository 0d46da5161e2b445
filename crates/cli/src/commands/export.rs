//! `export`: a stored run in the formats of other tools.

use super::outputs::{places_apart, remarks, tell_delivered, told_by_target};
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::places::Places;
use crate::redact::Redact;
use clap::Args;
use jitterscope_export::{Destination, export_redacted, export_run};
use jitterscope_model::{Delivery, SCHEMA_VERSION};
use jitterscope_store::{RunReader, resolve};
use jitterscope_view::doubts_text;
use schemars::JsonSchema;
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
        let targets = args.to.iter().zip(&delivered);
        output::json(&Delivered {
            schema_version: SCHEMA_VERSION,
            targets: targets
                .map(|(target, delivery)| delivered_to(target, delivery, args.redact))
                .collect(),
        })?;
    }
    let mut exit = Exit::Ok;
    for (target, delivery) in args.to.iter().zip(&delivered) {
        if delivery.lost > 0 {
            exit = Exit::Failed;
        }
        if !(args.quiet || args.json) || delivery.lost > 0 {
            tell_delivered(target, delivery);
        }
    }
    Ok(exit)
}

/// What became of each target.
#[derive(Serialize, JsonSchema)]
pub struct Delivered {
    /// Version of this structure.
    schema_version: u32,
    targets: Vec<DeliveredTo>,
}

#[derive(Serialize, JsonSchema)]
struct DeliveredTo {
    /// The target as the user named it; if redacted, only its scheme.
    target: String,
    #[serde(flatten)]
    delivery: Delivery,
}

fn delivered_to(target: &Destination, delivery: &Delivery, redact: Redact) -> DeliveredTo {
    if redact.on {
        let target = target.scheme().to_owned();
        let delivery = Delivery {
            problem: None,
            ..delivery.clone()
        };
        DeliveredTo { target, delivery }
    } else {
        DeliveredTo {
            target: target.to_string(),
            delivery: delivery.clone(),
        }
    }
}
