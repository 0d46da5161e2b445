//! Why a CPU was not measured to the end, as data.

use crate::CpuId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why the measurement of a CPU ended before its time. In JSON it has its stable, hyphenated `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum EndedEarly {
    /// The probe was moved to another CPU.
    Moved {
        cpu: CpuId,
        /// The CPU that it was found on.
        to_cpu: CpuId,
        /// The reason; null if it was not investigated.
        because: Option<MovedBecause>,
    },
    /// The CPU went offline.
    Offline,
}

/// Why a probe was moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MovedBecause {
    /// Whether the CPU went offline; otherwise the probe's allowed CPUs were changed.
    pub offline: bool,
    /// The thread that caused the move, if known.
    pub by: Option<Mover>,
}

/// The thread that caused a probe's move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mover {
    pub comm: String,
    pub tid: i32,
}
