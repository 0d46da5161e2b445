//! The machine's CPUs, and which resources they share.

use crate::machine::Machine;
use crate::thread::current_affinity;
use jitterscope_model::{CpuId, CpuSet};

const CPU_DIR: &str = "/sys/devices/system/cpu";

/// The CPUs of a machine as the kernel lists them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    pub present: CpuSet,
    pub online: CpuSet,
    /// Outside every scheduling domain (`isolcpus=domain` or an isolated cpuset partition).
    pub isolated: CpuSet,
    /// Able to stop the tick while one task runs.
    pub nohz_full: CpuSet,
    /// CPUs of this process's cpuset, if it can be read.
    pub cpuset: Option<CpuSet>,
}

impl Topology {
    /// Reads it. Data that the kernel does not provide is left empty, but the online CPUs are always known.
    #[must_use]
    pub fn read(machine: &Machine) -> Topology {
        let list = |path: &str| -> CpuSet {
            machine
                .read_trimmed(path)
                .ok()
                .and_then(|text| text.parse().ok())
                .unwrap_or_default()
        };
        let mut online = list(&format!("{CPU_DIR}/online"));
        if online.is_empty() {
            online = cpuinfo_cpus(machine);
        }
        if online.is_empty() && machine.is_host() {
            // Neither /sys nor /proc is mounted. The kernel only allows online CPUs in an affinity mask.
            online = current_affinity().unwrap_or_default();
        }
        let mut isolated = list(&format!("{CPU_DIR}/isolated"));
        for cpu in list("/sys/fs/cgroup/cpuset.cpus.isolated").iter() {
            isolated.insert(cpu);
        }
        let mut present = list(&format!("{CPU_DIR}/present"));
        if present.is_empty() {
            present = online.clone();
        }
        Topology {
            present,
            isolated,
            // The file holds "(null)" on kernels built for it and booted without; that parses as empty.
            nohz_full: list(&format!("{CPU_DIR}/nohz_full")),
            cpuset: own_cpuset(machine),
            online,
        }
    }

    /// Whether `cpu` is offline, or is going offline. The kernel moves threads away from a CPU before it removes the
    /// CPU from the online list, and after it sets `hotplug/target` (`Documentation/core-api/cpu_hotplug.rst`).
    #[must_use]
    pub fn is_leaving(&self, machine: &Machine, cpu: CpuId) -> bool {
        let target = |cpu: CpuId| -> Option<u32> {
            machine
                .read_trimmed(format!("{CPU_DIR}/cpu{cpu}/hotplug/target"))
                .ok()?
                .parse()
                .ok()
        };
        let highest = || self.online.iter().filter_map(target).max();
        !self.online.contains(cpu) || target(cpu) < highest()
    }

    /// The other CPUs of `cpu`'s physical core.
    #[must_use]
    pub fn siblings(machine: &Machine, cpu: CpuId) -> CpuSet {
        let path = format!("{CPU_DIR}/cpu{cpu}/topology/thread_siblings_list");
        let all: CpuSet = machine
            .read_trimmed(path)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or_default();
        all.iter().filter(|c| *c != cpu).collect()
    }

    /// Bytes of the largest cache of the first or second level that `cpu` or its core has to itself; `None` if the
    /// kernel does not tell, as on many virtual machines.
    #[must_use]
    pub fn near_cache_bytes(machine: &Machine, cpu: CpuId) -> Option<u64> {
        let folder = format!("{CPU_DIR}/cpu{cpu}/cache");
        let size = |index: String| {
            let read = |file: &str| {
                machine
                    .read_trimmed(format!("{folder}/{index}/{file}"))
                    .ok()
            };
            let level: u8 = read("level")?.parse().ok()?;
            let size = read("size")?;
            let kib: u64 = size.strip_suffix('K')?.parse().ok()?;
            (level <= 2 && read("type")? != "Instruction").then(|| kib.checked_mul(1024))?
        };
        machine
            .list(&folder)
            .into_iter()
            .filter(|name| name.starts_with("index"))
            .filter_map(size)
            .max()
    }
}

fn cpuinfo_cpus(machine: &Machine) -> CpuSet {
    let text = machine.read("/proc/cpuinfo").unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            line.strip_prefix("processor")?
                .split_once(':')?
                .1
                .trim()
                .parse()
                .ok()
                .map(CpuId)
        })
        .collect()
}

/// The CPUs that the process's cgroup may use, from the v1 cpuset controller or the unified hierarchy.
fn own_cpuset(machine: &Machine) -> Option<CpuSet> {
    let groups = machine.read("/proc/self/cgroup").ok()?;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let files = if controllers.split(',').any(|c| c == "cpuset") {
            let dir = format!("/sys/fs/cgroup/cpuset{path}");
            [
                format!("{dir}/cpuset.effective_cpus"),
                format!("{dir}/cpuset.cpus"),
            ]
        } else if controllers.is_empty() {
            let dir = format!("/sys/fs/cgroup{path}");
            [
                format!("{dir}/cpuset.cpus.effective"),
                format!("{dir}/../cpuset.cpus.effective"),
            ]
        } else {
            continue;
        };
        for file in files {
            match machine
                .read_trimmed(&file)
                .ok()
                .and_then(|text| text.parse::<CpuSet>().ok())
            {
                Some(cpus) if !cpus.is_empty() => return Some(cpus),
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_tuned_machine_is_read() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "/sys/devices/system/cpu/online", "0-7\n");
        write(dir.path(), "/sys/devices/system/cpu/present", "0-7\n");
        write(dir.path(), "/sys/devices/system/cpu/isolated", "6-7\n");
        write(
            dir.path(),
            "/sys/devices/system/cpu/nohz_full",
            "  (null)\n",
        );
        write(
            dir.path(),
            "/proc/self/cgroup",
            "4:cpu,cpuacct:/\n3:cpuset:/box\n0::/unified\n",
        );
        write(
            dir.path(),
            "/sys/fs/cgroup/cpuset/box/cpuset.effective_cpus",
            "0-5\n",
        );
        let topology = Topology::read(&Machine::at(dir.path()));
        assert_eq!(topology.online.to_string(), "0-7");
        assert_eq!(topology.isolated.to_string(), "6-7");
        assert!(topology.nohz_full.is_empty());
        assert_eq!(topology.cpuset.unwrap().to_string(), "0-5");
    }

    #[test]
    fn a_cpu_leaves_when_it_is_set_offline() {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::at(dir.path());
        write(dir.path(), "/sys/devices/system/cpu/online", "0-1\n");
        let leaves = |cpu| Topology::read(&machine).is_leaving(&machine, CpuId(cpu));
        // A kernel without `hotplug/target`.
        assert_eq!([0, 1, 2].map(leaves), [false, false, true]);
        for (cpu, target) in [(0, "236"), (1, "236")] {
            write(
                dir.path(),
                &format!("/sys/devices/system/cpu/cpu{cpu}/hotplug/target"),
                target,
            );
        }
        assert_eq!([0, 1].map(leaves), [false, false]);
        write(
            dir.path(),
            "/sys/devices/system/cpu/cpu1/hotplug/target",
            "0\n",
        );
        assert_eq!([0, 1].map(leaves), [false, true]);
    }

    #[test]
    fn the_largest_cache_of_a_core_is_reported_and_no_shared_one() {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::at(dir.path());
        assert_eq!(Topology::near_cache_bytes(&machine, CpuId(3)), None);
        let caches = [
            ("1", "Data", "48K"),
            ("1", "Instruction", "4096K"),
            ("2", "Unified", "2048K"),
        ];
        for (index, (level, kind, size)) in caches
            .into_iter()
            .chain([("3", "Unified", "36864K")])
            .enumerate()
        {
            let folder = format!("/sys/devices/system/cpu/cpu3/cache/index{index}");
            for (file, text) in [("level", level), ("type", kind), ("size", size)] {
                write(
                    dir.path(),
                    &format!("{folder}/{file}"),
                    &format!("{text}\n"),
                );
            }
        }
        assert_eq!(
            Topology::near_cache_bytes(&machine, CpuId(3)),
            Some(2 << 20)
        );
        write(
            dir.path(),
            "/sys/devices/system/cpu/cpu3/cache/index2/size",
            "18446744073709551615K\n",
        );
        assert_eq!(
            Topology::near_cache_bytes(&machine, CpuId(3)),
            Some(48 << 10)
        );
    }

    #[test]
    fn without_sysfs_the_cpus_come_from_cpuinfo() {
        let dir = tempfile::tempdir().unwrap();
        write(
            dir.path(),
            "/proc/cpuinfo",
            "processor\t: 0\nmodel : x\n\nprocessor\t: 1\n",
        );
        let topology = Topology::read(&Machine::at(dir.path()));
        assert_eq!(topology.online.to_string(), "0-1");
        assert_eq!(topology.present, topology.online);
    }
}
