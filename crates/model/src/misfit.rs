//! What a pipeline's placement would measure in place of the machine, as data.

use crate::{CpuId, CpuSet, PipelineRole};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
    /// In the words of an earlier version.
    #[serde(untagged)]
    Worded(String),
    /// What a newer version wrote.
    #[serde(untagged)]
    Unknown(Map<String, Value>),
}

/// A pipeline's thread and its NUMA node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleNode {
    /// The thread.
    pub role: PipelineRole,
    /// The number of the node.
    pub node: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_every_version_wrote_is_read_and_kept() {
        let nodes = vec![RoleNode { role: PipelineRole::Producer, node: 1 }];
        let few = Misfit::TooFewCpus {
            threads: 3,
            cpus: "0-1".parse().unwrap(),
            cpuset: None,
            two_would_fit: true,
        };
        let few_json =
            json!({"id": "too-few-cpus", "threads": 3, "cpus": "0-1", "cpuset": null, "two_would_fit": true});
        for (text, meant) in [
            (few_json, Some(few)),
            (
                json!({"id": "across-nodes", "nodes": [{"role": "producer", "node": 1}]}),
                Some(Misfit::AcrossNodes { nodes }),
            ),
            (json!("three on one"), Some(Misfit::Worded("three on one".into()))),
            (json!({"id": "too-hot", "celsius": 99}), None),
        ] {
            let read: Misfit = serde_json::from_value(text.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), text);
            match meant {
                Some(meant) => assert_eq!(read, meant),
                None => assert!(matches!(read, Misfit::Unknown(_)), "{read:?}"),
            }
        }
    }
}
