//! Which CPUs share a physical core, and which share a NUMA node.

use crate::machine::Machine;
use jitterscope_model::{CpuId, CpuSet};
use std::collections::BTreeMap;

const CPU_DIR: &str = "/sys/devices/system/cpu";
const NODE_DIR: &str = "/sys/devices/system/node";

/// Cores and nodes of the CPUs, as the kernel reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuLayout {
    /// All hardware threads of a CPU's physical core, itself included.
    cores: BTreeMap<CpuId, CpuSet>,
    /// The NUMA node of a CPU.
    nodes: BTreeMap<CpuId, u32>,
}

impl CpuLayout {
    /// Reads it. A CPU without data counts as a core of its own on an unknown node.
    #[must_use]
    pub fn read(machine: &Machine, cpus: &CpuSet) -> CpuLayout {
        let list = |path: String| -> CpuSet {
            machine
                .read_trimmed(path)
                .ok()
                .and_then(|text| text.parse().ok())
                .unwrap_or_default()
        };
        let mut layout = CpuLayout::default();
        for cpu in cpus.iter() {
            let siblings = list(format!("{CPU_DIR}/cpu{cpu}/topology/thread_siblings_list"));
            if siblings.contains(cpu) {
                layout.cores.insert(cpu, siblings);
            }
        }
        for name in machine.list(NODE_DIR) {
            let Some(node) = name.strip_prefix("node").and_then(|n| n.parse().ok()) else {
                continue;
            };
            for cpu in list(format!("{NODE_DIR}/{name}/cpulist")).iter() {
                layout.nodes.insert(cpu, node);
            }
        }
        layout
    }

    /// The CPUs of `cpu`'s core, itself included.
    #[must_use]
    pub fn core(&self, cpu: CpuId) -> CpuSet {
        self.cores
            .get(&cpu)
            .cloned()
            .unwrap_or_else(|| [cpu].into_iter().collect())
    }

    /// The NUMA node of `cpu`, if known.
    #[must_use]
    pub fn node(&self, cpu: CpuId) -> Option<u32> {
        self.nodes.get(&cpu).copied()
    }

    /// How many physical cores `cpus` lie on.
    #[must_use]
    pub fn cores_of(&self, cpus: &CpuSet) -> usize {
        let firsts: CpuSet = cpus
            .iter()
            .filter_map(|cpu| self.core(cpu).first())
            .collect();
        firsts.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn cores_and_nodes_are_read_and_what_is_not_reported_is_alone() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (cpu, siblings) in [(0, "0,2"), (1, "1,3"), (2, "0,2"), (3, "1,3")] {
            write(
                &format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"),
                siblings,
            );
        }
        write("sys/devices/system/node/node0/cpulist", "0,2\n");
        write("sys/devices/system/node/node1/cpulist", "1,3\n");
        write("sys/devices/system/node/possible", "0-1\n");
        let all: CpuSet = "0-4".parse().unwrap();
        let layout = CpuLayout::read(&Machine::at(dir.path()), &all);
        assert_eq!(layout.core(CpuId(2)).to_string(), "0,2");
        assert_eq!(layout.core(CpuId(4)).to_string(), "4");
        assert_eq!(
            [0, 1, 4].map(|cpu| layout.node(CpuId(cpu))),
            [Some(0), Some(1), None]
        );
        assert_eq!(
            (
                layout.cores_of(&all),
                layout.cores_of(&"0,2".parse().unwrap())
            ),
            (3, 1)
        );
    }
}
