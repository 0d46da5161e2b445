//! What a record of the kernel's costs whose event happens.

use crate::Nanos;
use serde::{Deserialize, Serialize};

/// What one record costs whose event happens, as measured on a CPU of our own before the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordCost {
    /// When the same event happens again and again.
    pub warm_ns: Nanos,
    /// When nothing that it needs is in the CPU's near caches.
    pub cold_ns: Nanos,
}
