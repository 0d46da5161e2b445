//! A control group of our own for one thread, in cgroup version 1 or 2.
//!
//! In version 1 a group can contain single threads. In version 2 only a *threaded* group can. So our group is threaded,
//! below the group of the thread's process, and the process stays in its group. Version 2 also requires that the cpu
//! controller is enabled for all levels down to the process's group. The name of our group contains the number of
//! levels where we enabled it, so that a later cleanup can disable it again.

use crate::DisturbError;
use jitterscope_model::QuotaLimit;
use jitterscope_platform::{FileError, Machine, TaskStat, read_throttling};

/// The cpu controller of version 1.
const OLD: [&str; 2] = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];
/// The mount points of version 2.
const UNIFIED: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// The prefix of our groups' names. It is followed by the process id of the child and, in version 2, by the number of
/// levels where we enabled the controller.
const NAME: &str = "jitterscope-selftest-";

/// A hierarchy of groups with a cpu controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hierarchy {
    root: &'static str,
    unified: bool,
}

impl Hierarchy {
    /// This machine's hierarchy, if any.
    pub(super) fn of(machine: &Machine) -> Option<Hierarchy> {
        let old = OLD
            .into_iter()
            .find(|root| machine.exists(format!("{root}/cpu.cfs_quota_us")));
        let unified = || {
            UNIFIED
                .into_iter()
                .find(|root| has_cpu(machine, root, "cgroup.controllers"))
        };
        match old {
            Some(root) => Some(Hierarchy {
                root,
                unified: false,
            }),
            None => unified().map(|root| Hierarchy {
                root,
                unified: true,
            }),
        }
    }

    /// The folder of a thread's current group.
    pub(super) fn own_group(self, machine: &Machine, tid: i32) -> Option<String> {
        let text = machine.read(format!("/proc/{tid}/cgroup")).ok()?;
        let path = text.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let controllers = fields.next()?;
            let path = fields.next()?;
            let is_it = match self.unified {
                true => controllers.is_empty(),
                false => controllers.split(',').any(|one| one == "cpu"),
            };
            is_it.then_some(path)
        })?;
        let outside = path.split('/').any(|component| component == "..");
        (!outside).then(|| format!("{}{}", self.root, path.trim_end_matches('/')))
    }

    /// The file that adds single threads to a group.
    pub(super) fn members(self, folder: &str) -> String {
        let file = if self.unified {
            "cgroup.threads"
        } else {
            "tasks"
        };
        format!("{folder}/{file}")
    }

    /// The groups where the controller must be enabled: from `folder` upwards, until a group already has it enabled.
    fn without_cpu(self, machine: &Machine, folder: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut at = folder;
        while self.unified && !has_cpu(machine, at, "cgroup.subtree_control") {
            found.push(at.to_owned());
            match at.rsplit_once('/') {
                Some((above, _)) if at != self.root => at = above,
                _ => break,
            }
        }
        found
    }
}

/// Whether a list of controllers contains `cpu`.
fn has_cpu(machine: &Machine, folder: &str, list: &str) -> bool {
    let text = machine.read(format!("{folder}/{list}"));
    text.is_ok_and(|text| text.split_whitespace().any(|one| one == "cpu"))
}

/// A group of ours. Dropping it restores everything.
pub(super) struct Group {
    machine: Machine,
    hierarchy: Hierarchy,
    folder: String,
    victim: i32,
}

impl Group {
    /// Makes one below a thread's current group.
    pub(super) fn above(
        victim: i32,
        own: String,
        hierarchy: Hierarchy,
        machine: Machine,
    ) -> Result<Group, DisturbError> {
        let mut handed = hierarchy.without_cpu(&machine, &own);
        let mut name = format!("{NAME}{}", std::process::id());
        if hierarchy.unified {
            name = format!("{name}-{}", handed.len());
        }
        let folder = format!("{own}/{name}");
        std::fs::create_dir(machine.path(&folder)).map_err(|source| FileError {
            path: machine.path(&folder),
            source,
        })?;
        // From here on, dropping it restores everything.
        let group = Group {
            machine,
            hierarchy,
            folder,
            victim,
        };
        if hierarchy.unified {
            // Before the controller is enabled: a group that contains processes can only give it to threads.
            group.write("cgroup.type", "threaded")?;
            while let Some(above) = handed.pop() {
                let control = format!("{above}/cgroup.subtree_control");
                group.machine.write(control, "+cpu")?;
            }
        }
        Ok(group)
    }

    fn write(&self, file: &str, value: &str) -> Result<(), DisturbError> {
        let path = format!("{}/{file}", self.folder);
        Ok(self.machine.write(path, value)?)
    }

    pub(super) fn limit(&self, limit: QuotaLimit) -> Result<(), DisturbError> {
        let QuotaLimit {
            quota_us,
            period_us,
        } = limit;
        if self.hierarchy.unified {
            return self.write("cpu.max", &format!("{quota_us} {period_us}"));
        }
        self.write("cpu.cfs_period_us", &period_us.to_string())?;
        self.write("cpu.cfs_quota_us", &quota_us.to_string())
    }

    /// Its throttled time so far, microseconds.
    pub(super) fn throttled(&self) -> u64 {
        read_throttling(&self.machine, &self.folder).map_or(0, |counted| counted.throttled_us)
    }

    pub(super) fn take(&self, tid: i32) -> Result<(), DisturbError> {
        let path = self.hierarchy.members(&self.folder);
        Ok(self.machine.write(path, &tid.to_string())?)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // If the thread has ended, there is nothing to move.
        remove(
            &self.machine,
            self.hierarchy,
            &self.folder,
            &[self.victim.to_string()],
        );
    }
}

/// Moves threads from our group to its parent, removes our group, and disables the controller where we enabled it.
/// Returns whether the group is gone.
fn remove(machine: &Machine, hierarchy: Hierarchy, folder: &str, tids: &[String]) -> bool {
    let (above, name) = folder.rsplit_once('/').unwrap_or((folder, ""));
    for tid in tids {
        let _ = machine.write(hierarchy.members(above), tid);
    }
    let gone = std::fs::remove_dir(machine.path(folder)).is_ok();
    let levels = name.rsplit_once('-').map(|(_, levels)| levels.parse());
    if let (true, true, Some(Ok(levels))) = (gone, hierarchy.unified, levels) {
        let mut at = Some(above);
        for _ in 0..levels {
            let Some(here) = at.filter(|here| here.starts_with(hierarchy.root)) else {
                break;
            };
            let _ = machine.write(format!("{here}/cgroup.subtree_control"), "-cpu");
            at = here.rsplit_once('/').map(|(above, _)| above);
        }
    }
    gone
}

/// Limits of the search: users with the right to make groups can make many.
const DEPTH: usize = 8;
const MOST_FOLDERS: usize = 4096;

/// Groups that killed children left, anywhere: the earlier selftest may have run in another group than this process.
#[must_use]
pub fn leftover_groups(machine: &Machine) -> Vec<String> {
    let Some(hierarchy) = Hierarchy::of(machine) else {
        return Vec::new();
    };
    let dead = |name: &str| {
        let numbers = name.strip_prefix(NAME)?;
        let (pid, levels) = numbers.split_once('-').unwrap_or((numbers, "0"));
        let ours = pid.parse::<u32>().is_ok() && levels.parse::<u8>().is_ok();
        ours.then(|| !is_alive(machine, pid))
    };
    let mut found = Vec::new();
    let mut level = vec![hierarchy.root.to_owned()];
    let mut looked_into = 0;
    for _ in 0..DEPTH {
        let mut below = Vec::new();
        for folder in level.iter().take(MOST_FOLDERS - looked_into) {
            looked_into += 1;
            for name in machine.list(folder) {
                let path = format!("{folder}/{name}");
                // Skips groups of other users, who may have the right to make groups.
                if !is_own_folder(&machine.path(&path)) {
                    continue;
                }
                if dead(&name) == Some(true) {
                    found.push(path)
                } else {
                    below.push(path)
                }
            }
        }
        level = below;
    }
    found
}

/// Whether it is a folder of ours.
fn is_own_folder(path: &std::path::Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let ours = rustix::process::geteuid().as_raw();
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == ours)
}

/// Removes these groups. First moves their threads to the parent, because the kernel only removes empty groups. Returns
/// the removed groups, and the remaining ones.
pub fn remove_leftover_groups(machine: &Machine) -> (Vec<String>, Vec<String>) {
    let Some(hierarchy) = Hierarchy::of(machine) else {
        return (Vec::new(), Vec::new());
    };
    leftover_groups(machine).into_iter().partition(|group| {
        let tids = machine.read(hierarchy.members(group)).unwrap_or_default();
        let tids: Vec<String> = tids.lines().map(str::to_owned).collect();
        remove(machine, hierarchy, group, &tids)
    })
}

/// Whether this process exists and is not a zombie.
fn is_alive(machine: &Machine, pid: &str) -> bool {
    TaskStat::of(machine, pid).and_then(|stat| stat.has_ended()) == Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn groups_of_the_dead_are_found_wherever_they_are_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::at(dir.path());
        let cpu = "sys/fs/cgroup/cpu";
        for group in [
            "",
            "/jitterscope-selftest-7",
            "/user/a/jitterscope-selftest-8",
            "/jitterscope-selftest-9",
        ] {
            let folder = dir.path().join(format!("{cpu}{group}"));
            fs::create_dir_all(&folder).unwrap();
        }
        fs::create_dir_all(dir.path().join(format!("{cpu}/jitterscope-selftest-x"))).unwrap();
        fs::write(dir.path().join(format!("{cpu}/cpu.cfs_quota_us")), "-1").unwrap();
        // 9 is alive, 8 is a zombie.
        for (pid, state) in [(9, 'S'), (8, 'Z')] {
            fs::create_dir_all(dir.path().join(format!("proc/{pid}"))).unwrap();
            fs::write(
                dir.path().join(format!("proc/{pid}/stat")),
                format!("{pid} (a) b) {state} 1"),
            )
            .unwrap();
        }
        let dead = [
            "/sys/fs/cgroup/cpu/jitterscope-selftest-7",
            "/sys/fs/cgroup/cpu/user/a/jitterscope-selftest-8",
        ];
        assert_eq!(leftover_groups(&machine), dead);
        let (gone, kept) = remove_leftover_groups(&machine);
        assert_eq!(
            (gone.as_slice(), kept.as_slice()),
            (dead.map(str::to_owned).as_slice(), &[] as &[String])
        );
        assert!(leftover_groups(&machine).is_empty());
        assert!(
            dir.path()
                .join(format!("{cpu}/jitterscope-selftest-9"))
                .exists()
        );
        assert!(
            dir.path()
                .join(format!("{cpu}/jitterscope-selftest-x"))
                .exists()
        );
    }

    #[test]
    fn groups_that_were_made_in_great_number_are_not_all_looked_into() {
        let dir = tempfile::tempdir().unwrap();
        let cpu = dir.path().join("sys/fs/cgroup/cpu");
        fs::create_dir_all(cpu.join("jitterscope-selftest-7")).unwrap();
        fs::write(cpu.join("cpu.cfs_quota_us"), "-1").unwrap();
        for n in 0..MOST_FOLDERS + 10 {
            fs::create_dir(cpu.join(format!("a{n}"))).unwrap();
        }
        assert_eq!(leftover_groups(&Machine::at(dir.path())).len(), 1);
    }

    /// A fake version 2 folder: its files exist before they are written.
    fn unified(groups: &[(&str, &str)]) -> (tempfile::TempDir, Machine) {
        let dir = tempfile::tempdir().unwrap();
        for (group, handed) in groups {
            let folder = dir.path().join(format!("sys/fs/cgroup{group}"));
            fs::create_dir_all(&folder).unwrap();
            for (file, text) in [
                ("cgroup.controllers", "cpu memory"),
                ("cgroup.subtree_control", handed),
                ("cgroup.threads", ""),
                ("cgroup.type", "domain"),
                ("cpu.max", "max 100000"),
            ] {
                fs::write(folder.join(file), text).unwrap();
            }
        }
        let machine = Machine::at(dir.path());
        (dir, machine)
    }

    #[test]
    fn version_2_hands_the_controller_down_as_far_as_it_must() {
        let (dir, machine) = unified(&[("", "cpu memory"), ("/a", "memory"), ("/a/b", "")]);
        fs::create_dir_all(dir.path().join("proc/42")).unwrap();
        fs::write(dir.path().join("proc/42/cgroup"), "0::/a/b\n").unwrap();
        let hierarchy = Hierarchy::of(&machine).unwrap();
        assert!(hierarchy.unified);
        let own = hierarchy.own_group(&machine, 42).unwrap();
        assert_eq!(own, "/sys/fs/cgroup/a/b");
        let lacking = hierarchy.without_cpu(&machine, &own);
        assert_eq!(lacking, ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a"]);
        let (_dir, bare) = unified(&[("", "")]);
        let root = "/sys/fs/cgroup";
        assert_eq!(hierarchy.without_cpu(&bare, root), [root]);
    }

    #[test]
    fn what_was_handed_down_for_a_group_is_taken_back_with_it() {
        let (dir, machine) = unified(&[("", "cpu"), ("/a", "cpu"), ("/a/b", "cpu")]);
        let group = "sys/fs/cgroup/a/b/jitterscope-selftest-7-2";
        fs::create_dir(dir.path().join(group)).unwrap();
        let (gone, kept) = remove_leftover_groups(&machine);
        assert_eq!((gone, kept), (vec![format!("/{group}")], vec![]));
        let handed = ["", "/a", "/a/b"].map(|group| {
            let file = format!("sys/fs/cgroup{group}/cgroup.subtree_control");
            fs::read_to_string(dir.path().join(file)).unwrap()
        });
        assert_eq!(handed, ["cpu", "-cpu", "-cpu"]);
    }
}
