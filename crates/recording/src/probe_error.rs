//! Why a probe could not measure.

use jitterscope_platform::PinError;
use jitterscope_probe::{SpinError, WakeupError};

/// A probe that could not measure.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A spinning one.
    #[error(transparent)]
    Spin(#[from] SpinError),
    /// A sleeping one.
    #[error(transparent)]
    Wakeup(#[from] WakeupError),
}

impl ProbeError {
    /// Why it could not take its place, where that is why.
    pub(crate) fn pin(&self) -> Option<&PinError> {
        match self {
            ProbeError::Spin(SpinError::Pin(error))
            | ProbeError::Wakeup(WakeupError::Pin(error)) => Some(error),
            _ => None,
        }
    }
}
