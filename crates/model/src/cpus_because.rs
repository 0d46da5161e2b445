//! Why the CPUs of a recording were chosen, as data.

use crate::CpuSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why these CPUs are measured if the user named none. In JSON it has its stable, hyphenated `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum CpusBecause {
    Isolated {
        cpus: CpuSet,
    },
    /// No CPU is isolated, and this is the highest one that this process may use.
    HighestAllowed,
    /// The tuning in force keeps them undisturbed.
    KeptByTune {
        cpus: CpuSet,
    },
}
