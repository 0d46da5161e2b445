//! The cost of one kernel trace record to the CPU that writes it.

use crate::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The cost of one record to the CPU that writes it, as measured on one of our own CPUs before the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordCost {
    /// With warm caches: the same event repeats.
    pub warm_ns: Nanos,
    /// With cold caches: none of the needed data is in the CPU's near caches.
    pub cold_ns: Nanos,
}
