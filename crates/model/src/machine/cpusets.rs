//! cpusets.

use super::Reading;
use crate::CpuSet;
use serde::{Deserialize, Serialize};

/// cpusets with settings of their own: their CPUs differ from their parent's, or they reserve CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cpusets {
    /// CPUs of the recorder's own cpuset; absent if no hierarchy has cpusets.
    pub own: Reading<CpuSet>,
    /// The others, by path.
    pub groups: Vec<CpusetGroup>,
    /// The number of further groups; a lower bound if the hierarchy exceeds the read limit.
    pub omitted: u64,
}

/// The hierarchy that a group belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hierarchy {
    /// The `cpuset` controller's own hierarchy.
    V1,
    /// The unified hierarchy.
    #[default]
    V2,
    /// Written by a newer version.
    #[serde(untagged)]
    Newer(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpusetGroup {
    /// Its path below the hierarchy's root.
    pub path: String,
    pub hierarchy: Hierarchy,
    pub cpus: Reading<CpuSet>,
    pub effective: Reading<CpuSet>,
    /// v2: `member`, `root` or `isolated`, and the kernel's explanation.
    pub partition: Reading<String>,
    /// v1: whether it has its CPUs exclusively.
    pub exclusive: Reading<bool>,
    /// v1: whether the scheduler balances load within it.
    pub balanced: Reading<bool>,
}
