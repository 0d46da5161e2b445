//! Errors of probes.

use jitterscope_platform::PinError;
use jitterscope_probe::{SpinError, WakeupError};

/// A probe that could not measure.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// Error of a spinning probe.
    #[error(transparent)]
    Spin(#[from] SpinError),
    /// Error of a sleeping probe.
    #[error(transparent)]
    Wakeup(#[from] WakeupError),
}

impl ProbeError {
    /// The reason why it could not be placed on its CPU, if that is the cause.
    pub(crate) fn pin(&self) -> Option<&PinError> {
        match self {
            ProbeError::Spin(SpinError::Pin(error))
            | ProbeError::Wakeup(WakeupError::Pin(error)) => Some(error),
            _ => None,
        }
    }
}
