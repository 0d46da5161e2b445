//! cpusets of both cgroup versions.

use super::{cpu_list, cut, switch, text};
use crate::machine::Machine;
use crate::topology::Topology;
use jitterscope_model::{CpuSet, CpusetGroup, Cpusets, Hierarchy, Reading};

/// Groups kept at most.
const MOST: usize = 256;
/// Groups read at most: a host of many containers has some thousand.
const LOOKED_AT: usize = 4096;
/// The longest path kept, in bytes.
const LONGEST: usize = 256;

pub(super) fn read(machine: &Machine, topology: &Topology) -> Cpusets {
    let mut found = Cpusets {
        own: topology.cpuset.clone().into(),
        ..Cpusets::default()
    };
    if machine.exists("/sys/fs/cgroup/cpuset/cpuset.cpus") {
        walk(machine, "/sys/fs/cgroup/cpuset", Hierarchy::V1, &mut found);
    }
    let unified = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
        .into_iter()
        .find(|root| machine.exists(format!("{root}/cgroup.controllers")));
    if let Some(root) = unified {
        walk(machine, root, Hierarchy::V2, &mut found);
    }
    found
}

/// Reads all groups below `root`, parents before their children, and keeps the significant ones.
fn walk(machine: &Machine, root: &str, hierarchy: Hierarchy, found: &mut Cpusets) {
    let mut looked_at = 0;
    // Each with the CPUs of its parent.
    let mut open: Vec<(String, Option<CpuSet>)> = vec![(String::new(), None)];
    while let Some((path, parents)) = open.pop() {
        looked_at += 1;
        if looked_at > LOOKED_AT {
            found.omitted += 1 + open.len() as u64;
            return;
        }
        let folder = format!("{root}{path}");
        let group = group(machine, &folder, &path, &hierarchy);
        let has = match &group.effective {
            Reading::Absent => group.cpus.value(),
            known => known.value(),
        }
        .cloned();
        if parents.is_some() && says_something(&group, parents.as_ref()) {
            if found.groups.len() < MOST {
                found.groups.push(group);
            } else {
                found.omitted += 1;
            }
        }
        let names = machine.list(&folder);
        let children = names.into_iter().rev().filter(|name| {
            // Symbolic links are skipped: the kernel makes none here.
            std::fs::symlink_metadata(machine.path(format!("{folder}/{name}")))
                .is_ok_and(|m| m.is_dir())
        });
        let passed_on = has.or(parents).unwrap_or_default();
        open.extend(children.map(|name| (format!("{path}/{name}"), Some(passed_on.clone()))));
    }
}

fn group(machine: &Machine, folder: &str, path: &str, hierarchy: &Hierarchy) -> CpusetGroup {
    let file = |name: &str| format!("{folder}/{name}");
    let mut group = CpusetGroup {
        path: cut(path.to_owned(), LONGEST),
        hierarchy: hierarchy.clone(),
        cpus: cpu_list(machine, &file("cpuset.cpus")),
        ..CpusetGroup::default()
    };
    if *hierarchy == Hierarchy::V1 {
        group.effective = cpu_list(machine, &file("cpuset.effective_cpus"));
        group.exclusive = switch(machine, &file("cpuset.cpu_exclusive"));
        group.balanced = switch(machine, &file("cpuset.sched_load_balance"));
    } else {
        group.effective = cpu_list(machine, &file("cpuset.cpus.effective"));
        group.partition = text(machine, &file("cpuset.cpus.partition"));
    }
    group
}

/// Whether a group restricts its CPUs, or has them exclusively.
fn says_something(group: &CpusetGroup, parents: Option<&CpuSet>) -> bool {
    let asked = group.cpus.value().filter(|cpus| !cpus.is_empty());
    asked.is_some_and(|cpus| Some(cpus) != parents)
        || group
            .partition
            .value()
            .is_some_and(|partition| partition != "member")
        || group.exclusive == Reading::Value(true)
        || group.balanced == Reading::Value(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::fake;

    #[test]
    fn what_restricts_or_reserves_is_kept() {
        let (_dir, machine) = fake::machine(&[
            ("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n"),
            ("/sys/fs/cgroup/cpuset.cpus.effective", "0-7\n"),
            ("/sys/fs/cgroup/plain/cpuset.cpus", "\n"),
            ("/sys/fs/cgroup/plain/cpuset.cpus.effective", "0-7\n"),
            ("/sys/fs/cgroup/plain/cpuset.cpus.partition", "member\n"),
            ("/sys/fs/cgroup/plain/deep/cpuset.cpus", "2-3\n"),
            ("/sys/fs/cgroup/quiet/cpuset.cpus", "6-7\n"),
            ("/sys/fs/cgroup/quiet/cpuset.cpus.effective", "6-7\n"),
            ("/sys/fs/cgroup/quiet/cpuset.cpus.partition", "isolated\n"),
        ]);
        let found = read(&machine, &Topology::default());
        let paths: Vec<&str> = found.groups.iter().map(|g| g.path.as_str()).collect();
        assert_eq!(paths, ["/plain/deep", "/quiet"]);
        assert_eq!(found.groups[1].partition, Reading::Value("isolated".into()));
        assert_eq!(
            (found.groups[1].hierarchy.clone(), found.omitted),
            (Hierarchy::V2, 0)
        );
    }

    #[test]
    fn the_older_interface_is_read_too() {
        let (_dir, machine) = fake::machine(&[
            ("/sys/fs/cgroup/cpuset/cpuset.cpus", "0-3\n"),
            ("/sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-3\n"),
            ("/sys/fs/cgroup/cpuset/all/cpuset.cpus", "0-3\n"),
            ("/sys/fs/cgroup/cpuset/all/cpuset.cpu_exclusive", "0\n"),
            ("/sys/fs/cgroup/cpuset/shield/cpuset.cpus", "3\n"),
            ("/sys/fs/cgroup/cpuset/shield/cpuset.cpu_exclusive", "1\n"),
        ]);
        let found = read(&machine, &Topology::default());
        assert_eq!(found.groups.len(), 1);
        assert_eq!(
            (found.groups[0].path.as_str(), &found.groups[0].hierarchy),
            ("/shield", &Hierarchy::V1)
        );
        assert_eq!(found.groups[0].exclusive, Reading::Value(true));
    }

    #[test]
    fn many_containers_are_counted_not_kept() {
        let mut files = vec![
            (
                "/sys/fs/cgroup/cgroup.controllers".to_owned(),
                String::new(),
            ),
            (
                "/sys/fs/cgroup/cpuset.cpus.effective".to_owned(),
                "0-7\n".to_owned(),
            ),
        ];
        files.extend(
            (0..300).map(|n| (format!("/sys/fs/cgroup/c{n}/cpuset.cpus"), "1\n".to_owned())),
        );
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(p, t)| (p.as_str(), t.as_str()))
            .collect();
        let (_dir, machine) = fake::machine(&files);
        let found = read(&machine, &Topology::default());
        assert_eq!((found.groups.len(), found.omitted), (MOST, 44));
    }
}
