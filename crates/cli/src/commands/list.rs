//! `list`: the stored runs.

use crate::exit::Exit;
use crate::output;
use crate::places::Places;
use crate::redact::Redact;
use clap::Args;
use jitterscope_view::list;

/// Arguments of `list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    #[command(flatten)]
    pub redact: Redact,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs `list`.
///
/// # Errors
/// The folder of runs cannot be read, or stdout is closed.
pub fn run(args: &ListArgs, places: &Places) -> anyhow::Result<Exit> {
    let (runs, problems) = jitterscope_store::list(&places.runs()?)?;
    let (runs, problems) = if args.redact.on {
        list::redacted(&runs, &problems)
    } else {
        (runs, problems)
    };
    if args.json {
        output::json(&list::json(&runs, &problems))?;
    } else {
        output::result(&list::render(&runs, &problems, output::style()))?;
    }
    Ok(Exit::Ok)
}
