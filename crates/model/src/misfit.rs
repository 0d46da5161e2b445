//! Pipeline placements that distort the measurement, as data.

use crate::{CpuId, CpuSet, PipelineRole};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A flaw in the placement of a pipeline's threads: the run would measure the placement rather than the machine. In
/// JSON it has its stable, hyphenated `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum Misfit {
    /// More busy threads than CPUs to run them.
    TooFewCpus {
        threads: usize,
        /// The usable CPUs.
        cpus: CpuSet,
        /// The cpuset, if it excludes the other online CPUs.
        cpuset: Option<CpuSet>,
        /// Whether the threads would fit without the journaller.
        two_would_fit: bool,
    },
    /// The control group grants less CPU time than the threads use.
    Quota {
        threads: usize,
        /// The granted CPU time, in thousandths of a CPU.
        quota_millis: u64,
    },
    /// Threads were put on one CPU.
    SameCpu {
        roles: Vec<PipelineRole>,
        cpu: CpuId,
    },
    /// Threads were put on hardware threads of one core.
    SameCore {
        roles: Vec<PipelineRole>,
        core: CpuSet,
    },
    /// There are enough CPUs, but not enough cores.
    TooFewCores {
        threads: usize,
        /// The usable CPUs.
        cpus: CpuSet,
        /// The number of their cores.
        cores: usize,
    },
    /// Threads were put on different NUMA nodes.
    AcrossNodes {
        /// The node of each thread.
        nodes: Vec<RoleNode>,
    },
}

/// A pipeline's thread and its NUMA node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoleNode {
    pub role: PipelineRole,
    /// The number of its NUMA node.
    pub node: u32,
}
