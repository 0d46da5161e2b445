//! `--redact`, wherever something is made to be handed to others.

use clap::Args;

/// Whether names are left out.
#[derive(Args, Clone, Copy, Debug)]
pub struct Redact {
    /// Leave out names: of host, users, boot line, processes, containers, paths and labels. Threads become
    /// thread-1, ...; what stays is listed in the program, all else goes
    #[arg(long = "redact")]
    pub on: bool,
}
