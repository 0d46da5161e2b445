//! Where unbound work may run.

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

/// One queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkqueueMask {
    /// Its name.
    pub name: String,
    /// Its CPUs.
    pub cpus: Reading<CpuSet>,
}
