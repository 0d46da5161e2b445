//! Why a CPU was not measured to the end, as data.

use crate::CpuId;
use serde::{Deserialize, Serialize};

/// Why the measurement of a CPU ended before its time. In JSON it has its stable, hyphenated `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum EndedEarly {
    /// The probe was moved to another CPU.
    Moved {
        /// Where it measured.
        cpu: CpuId,
        /// Where it found itself.
        to_cpu: CpuId,
        /// Why; null where that was not looked for.
        because: Option<MovedBecause>,
    },
    /// The CPU went offline.
    Offline,
}

/// Why a probe was moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedBecause {
    /// The CPU went offline; otherwise it was changed where the probe may run.
    pub offline: bool,
    /// The thread that had the probe moved, where that is known.
    pub by: Option<Mover>,
}

/// Who had a probe moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mover {
    /// The name of the thread.
    pub comm: String,
    /// Its id.
    pub tid: i32,
}
