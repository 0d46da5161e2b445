//! `--redact`, for all output that users pass on.

use clap::Args;
use jitterscope_store::StoreError;

/// Whether names are left out.
#[derive(Args, Clone, Copy, Debug)]
pub struct Redact {
    /// Leave out names of host, users, boot line, processes, containers, paths and labels: only what is known
    /// to be harmless stays, threads become thread-1, ...
    #[arg(long = "redact")]
    pub on: bool,
}

impl Redact {
    /// The error with its names removed, if redacted.
    pub fn error(self, error: anyhow::Error) -> anyhow::Error {
        if !self.on {
            return error;
        }
        match error.downcast::<StoreError>() {
            Ok(of_store) => of_store.without_names().into(),
            Err(other) => other,
        }
    }
}
