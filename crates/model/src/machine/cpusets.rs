//! cpusets.

use super::Reading;
use crate::CpuSet;
use serde::{Deserialize, Serialize};

/// cpusets that say something of their own: their CPUs differ from their parent's, or they reserve them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cpusets {
    /// CPUs of the recorder's own; absent when no hierarchy has cpusets.
    pub own: Reading<CpuSet>,
    /// The others, by path.
    pub groups: Vec<CpusetGroup>,
    /// How many more there are; at least, when the hierarchy is larger than is looked at.
    pub omitted: u64,
}

/// Which of the two interfaces a group belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hierarchy {
    /// The `cpuset` controller's own hierarchy.
    V1,
    /// The unified one.
    #[default]
    V2,
    /// What a newer version wrote.
    #[serde(untagged)]
    Newer(String),
}

/// One group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpusetGroup {
    /// Its path below the hierarchy's root.
    pub path: String,
    /// Which interface.
    pub hierarchy: Hierarchy,
    /// CPUs that were asked for.
    pub cpus: Reading<CpuSet>,
    /// CPUs that it has.
    pub effective: Reading<CpuSet>,
    /// v2: `member`, `root` or `isolated`, with what the kernel says of it.
    pub partition: Reading<String>,
    /// v1: whether no other may have its CPUs.
    pub exclusive: Reading<bool>,
    /// v1: whether the scheduler balances within it.
    pub balanced: Reading<bool>,
}
