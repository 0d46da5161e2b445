//! Why a change could not be noted.

use jitterscope_platform::TrustError;
use std::io;
use std::path::PathBuf;

/// Why there is no note.
#[derive(Debug, thiserror::Error)]
pub enum NoteError {
    /// Another experiment changes the machine.
    #[error("another experiment changes this machine, or is being undone right now: wait for it")]
    Busy,
    /// Its folder.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// Its file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It makes no sense.
    #[error("{} is no note of an experiment: {why}; look whether what it says is still to be undone, and remove it", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}
