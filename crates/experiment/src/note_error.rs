//! Why a change could not be noted.

use jitterscope_platform::TrustError;
use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum NoteError {
    /// Another experiment changes the machine.
    #[error("another experiment changes this machine, or is being undone right now: wait for it")]
    Busy,
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error("{}: {source}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The note is invalid.
    #[error("{} is no note of an experiment: {why}; look whether what it says is still to be undone, and remove it", path.display())]
    Damaged { path: PathBuf, why: String },
}
