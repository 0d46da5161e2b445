//! Why the CPUs of a recording were chosen, as data.

use crate::CpuSet;
use serde::{Deserialize, Serialize};

/// Why these CPUs are measured, where the user named none. In JSON it has its stable, hyphenated `id` beside its
/// fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum CpusBecause {
    /// They are isolated.
    Isolated {
        /// The CPUs.
        cpus: CpuSet,
    },
    /// No CPU is isolated, and this is the highest one that this process may use.
    HighestAllowed,
    /// What was tuned here keeps them undisturbed.
    KeptByTune {
        /// The CPUs.
        cpus: CpuSet,
    },
}
