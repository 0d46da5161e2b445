//! CPUs for unbound work.

use super::Reading;
use crate::CpuSet;
use serde::{Deserialize, Serialize};

/// Masks of unbound workqueues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Workqueues {
    /// CPUs for unbound work of all queues.
    pub unbound: Reading<CpuSet>,
    /// Queues with a mask of their own, by name.
    pub queues: Vec<WorkqueueMask>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkqueueMask {
    pub name: String,
    pub cpus: Reading<CpuSet>,
}
