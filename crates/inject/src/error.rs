//! What can go wrong in a child that disturbs.

use jitterscope_platform::{FileError, PinError, TrustError};
use std::io;

/// Why a disturbance could not be injected.
#[derive(Debug, thiserror::Error)]
pub enum DisturbError {
    /// The machine or our privileges do not allow it.
    #[error("{0}")]
    Unavailable(String),
    /// A system call was refused.
    #[error("{what}: {source}")]
    Refused {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The thread could not be put where it must run.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// A control file was refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// The notes of what is changed cannot be kept safely.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The parent could not be written to, or read from.
    #[error("talking to the parent process failed: {0}")]
    Parent(#[source] io::Error),
    /// Whoever started us is gone.
    #[error("process {0}, which started this one, is gone")]
    Orphaned(u32),
    /// The command line is not one that [`super::ChildHandle`] writes.
    #[error("this subcommand is selftest's own: {0}")]
    Arguments(String),
    /// A packet that was sent to ourselves never arrived.
    #[error("a packet on the private loopback device did not arrive within {0} ms")]
    PacketLost(u64),
}

impl DisturbError {
    /// For `map_err`: a refusal of `what`.
    pub(super) fn refused<E: Into<io::Error>>(
        what: &'static str,
    ) -> impl FnOnce(E) -> DisturbError {
        move |source| DisturbError::Refused {
            what,
            source: source.into(),
        }
    }
}
