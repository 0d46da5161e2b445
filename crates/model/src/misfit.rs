//! What a pipeline's placement would measure in place of the machine, as data.

use crate::{CpuId, CpuSet, PipelineRole};
use serde::{Deserialize, Serialize};

/// Something about the placement of a pipeline's threads that measures the placement rather than the machine. In JSON
/// it has its stable, hyphenated `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum Misfit {
    /// More busy threads than CPUs to run them.
    TooFewCpus {
        /// Busy threads.
        threads: usize,
        /// What they could run on.
        cpus: CpuSet,
        /// The cpuset, if that is what leaves so few of the online CPUs.
        cpuset: Option<CpuSet>,
        /// Whether leaving out the journaller would do.
        two_would_fit: bool,
    },
    /// The control group grants less CPU time than the threads use.
    Quota {
        /// Busy threads.
        threads: usize,
        /// What is granted, in thousandths of a CPU.
        quota_millis: u64,
    },
    /// Threads were put on one CPU.
    SameCpu {
        /// The threads.
        roles: Vec<PipelineRole>,
        /// The CPU.
        cpu: CpuId,
    },
    /// Threads were put on hardware threads of one core.
    SameCore {
        /// The threads.
        roles: Vec<PipelineRole>,
        /// The core.
        core: CpuSet,
    },
    /// There are enough CPUs, but not enough cores.
    TooFewCores {
        /// Busy threads.
        threads: usize,
        /// What they could run on.
        cpus: CpuSet,
        /// Cores of these.
        cores: usize,
    },
    /// Threads were put on different NUMA nodes.
    AcrossNodes {
        /// Where each of them is.
        nodes: Vec<RoleNode>,
    },
}

/// A pipeline's thread and its NUMA node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleNode {
    /// The thread.
    pub role: PipelineRole,
    /// The number of the node.
    pub node: u32,
}
