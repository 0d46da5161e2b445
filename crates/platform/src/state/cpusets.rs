//! cpusets of both cgroup versions.

use super::files::{cut, value};
use crate::machine::Machine;
use jitterscope_model::{CpuSet, FileForm, MachineEntry, MachineSettings, Reading, Scalar};

/// Groups kept at most.
const MOST: usize = 256;
/// Groups read at most: a host of many containers has some thousand.
const LOOKED_AT: usize = 4096;
/// The longest path kept, in bytes.
const LONGEST: usize = 256;

/// The groups that restrict their CPUs or have them exclusively.
#[derive(Default)]
struct Found {
    cpus: Vec<MachineEntry>,
    effective: Vec<MachineEntry>,
    exclusive: Vec<MachineEntry>,
    balanced: Vec<MachineEntry>,
    omitted: u64,
}

pub(super) fn read(machine: &Machine, settings: &mut MachineSettings) {
    let mut found = Found::default();
    if machine.exists("/sys/fs/cgroup/cpuset/cpuset.cpus") {
        walk(machine, "/sys/fs/cgroup/cpuset", &mut found);
    }
    let unified = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
        .into_iter()
        .find(|root| machine.exists(format!("{root}/cgroup.controllers")));
    if let Some(root) = unified {
        walk(machine, root, &mut found);
    }
    settings.put("cpusets", found.cpus);
    for (name, mut entries) in [
        ("cpusets.effective", found.effective),
        ("cpusets.exclusive", found.exclusive),
        ("cpusets.balanced", found.balanced),
    ] {
        // Each file exists in one version of cgroups only.
        entries.retain(|entry| entry.is != Reading::Absent);
        settings.put(name, entries);
    }
    if found.omitted > 0 {
        settings.put("cpusets.omitted", [MachineEntry::new(found.omitted)]);
    }
}

/// Reads all groups below `root`, parents before their children, and keeps the significant ones.
fn walk(machine: &Machine, root: &str, found: &mut Found) {
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
        let file = |name: &str, form| -> MachineEntry {
            let entry = MachineEntry::from(value(machine, &format!("{folder}/{name}"), form));
            entry.of(cut(path.clone(), LONGEST))
        };
        let mut cpus = file("cpuset.cpus", FileForm::Cpus);
        cpus.with = file("cpuset.cpus.partition", FileForm::Text)
            .text()
            .filter(|kind| *kind != "member")
            .map(str::to_owned);
        let effective = match file("cpuset.cpus.effective", FileForm::Cpus) {
            entry if entry.is == Reading::Absent => file("cpuset.effective_cpus", FileForm::Cpus),
            entry => entry,
        };
        let exclusive = file("cpuset.cpu_exclusive", FileForm::Switch);
        let balanced = file("cpuset.sched_load_balance", FileForm::Switch);
        let set = |entry: &MachineEntry| -> Option<CpuSet> { entry.text()?.parse().ok() };
        let has = match &effective.is {
            Reading::Absent => set(&cpus),
            _ => set(&effective),
        };
        let asked = set(&cpus).filter(|cpus| !cpus.is_empty());
        let says_something = asked.is_some_and(|cpus| Some(cpus) != parents)
            || cpus.with.is_some()
            || exclusive.is == Reading::Value(Scalar::Switch(true))
            || balanced.is == Reading::Value(Scalar::Switch(false));
        if parents.is_some() && says_something {
            if found.cpus.len() < MOST {
                found.cpus.push(cpus);
                found.effective.push(effective);
                found.exclusive.push(exclusive);
                found.balanced.push(balanced);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::fake;

    fn settings(machine: &Machine) -> MachineSettings {
        let mut settings = MachineSettings::default();
        read(machine, &mut settings);
        settings
    }

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
        let found = settings(&machine);
        let groups = found.get("cpusets");
        let paths: Vec<_> = groups.iter().map(|g| g.of.as_deref().unwrap()).collect();
        assert_eq!(paths, ["/plain/deep", "/quiet"]);
        assert_eq!(groups[0].with, None);
        assert_eq!(
            (groups[1].text(), groups[1].with.as_deref()),
            (Some("6-7"), Some("isolated"))
        );
        assert_eq!(found.get("cpusets.effective")[0].of, groups[1].of);
        assert_eq!(found.get("cpusets.omitted"), []);
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
        let found = settings(&machine);
        let groups = found.get("cpusets");
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].of.as_deref(), Some("/shield"));
        let exclusive = &found.get("cpusets.exclusive")[0];
        assert_eq!(
            (&exclusive.of, &exclusive.is),
            (&groups[0].of, &Reading::Value(true.into()))
        );
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
        let (_dir, machine) = fake::machine(&files);
        let found = settings(&machine);
        assert_eq!(found.get("cpusets").len(), MOST);
        assert_eq!(found.value("cpusets.omitted"), Some(&44u64.into()));
    }
}
