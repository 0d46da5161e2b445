//! `--redact`, wherever something is made to be handed to others.

use clap::Args;

/// Whether names are left out.
#[derive(Args, Clone, Copy, Debug)]
pub struct Redact {
    /// Leave out names of host, users, boot line, processes, containers, paths and labels: only what is known
    /// to be harmless stays, threads become thread-1, ...
    #[arg(long = "redact")]
    pub on: bool,
}
