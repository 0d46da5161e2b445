//! Errors of a disturbing child.

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
        what: &'static str,
        source: io::Error,
    },
    /// The thread could not be moved to its CPU.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// A control file refused a value.
    #[error(transparent)]
    File(#[from] FileError),
    /// The notes about changes cannot be stored safely.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// Communication with the parent failed.
    #[error("talking to the parent process failed: {0}")]
    Parent(#[source] io::Error),
    /// The parent process is gone.
    #[error("process {0}, which started this one, is gone")]
    Orphaned(u32),
    /// The command line is not one that [`super::ChildHandle`] writes.
    #[error("this subcommand is selftest's own: {0}")]
    Arguments(String),
    /// A packet to ourselves never arrived.
    #[error("a packet on the private loopback device did not arrive within {0} ms")]
    PacketLost(u64),
}

impl DisturbError {
    /// For `map_err`: the refusal of `what`.
    pub(super) fn refused<E: Into<io::Error>>(
        what: &'static str,
    ) -> impl FnOnce(E) -> DisturbError {
        move |source| DisturbError::Refused {
            what,
            source: source.into(),
        }
    }
}
