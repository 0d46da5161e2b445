//! The hidden child of `selftest`.

use crate::exit::Exit;
use clap::Args;
use jitterscope_inject as inject;

/// Arguments that the parent appends.
#[derive(Args, Debug)]
pub struct DisturbArgs {
    /// What to inject
    kind: String,
    /// Settings, as JSON
    settings: String,
}

/// Injects the disturbance and writes its record to stdout.
///
/// # Errors
/// The machine does not allow it, or the injection failed.
pub fn run(args: &DisturbArgs) -> anyhow::Result<Exit> {
    inject::run_command(&args.kind, &args.settings, &mut std::io::stdout().lock())?;
    Ok(Exit::Ok)
}
