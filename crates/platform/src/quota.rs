//! CPU quotas of control groups.

use crate::kept_file::KeptFile;
use crate::machine::Machine;
use jitterscope_model::QuotaLimit;

/// The longest path of a control group that is read, in bytes: users with the right to make groups choose their names.
const LONGEST_PATH: usize = 4096;

/// A control group that may have a CPU quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuGroup {
    /// The group, as `/proc/PID/cgroup` names it; `/` is the topmost that is visible from here.
    pub cgroup: String,
    /// The path of its folder in the cgroup file system.
    pub folder: String,
    /// Whether it belongs to the unified hierarchy (version 2).
    pub unified: bool,
    /// Its current quota; `None` if unlimited.
    pub limit: Option<QuotaLimit>,
}

impl CpuGroup {
    /// The file that sets its quota.
    #[must_use]
    pub fn limit_file(&self) -> String {
        let name = if self.unified {
            "cpu.max"
        } else {
            "cpu.cfs_quota_us"
        };
        format!("{}/{name}", self.folder)
    }
}

/// The throttling counters of a group's `cpu.stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which it was throttled.
    pub times: u64,
    /// For how long, summed over the CPUs, in microseconds.
    pub throttled_us: u64,
}

/// The tightest CPU quota above this process, in thousandths of a CPU; `None` if unlimited.
#[must_use]
pub fn cpu_quota_millis(machine: &Machine) -> Option<u64> {
    let groups = machine.read("/proc/self/cgroup").unwrap_or_default();
    cpu_groups(machine, &groups)
        .iter()
        .filter_map(|group| group.limit?.millis())
        .min()
}

/// The groups that may limit a process with these groups, given as in `/proc/PID/cgroup`: its own groups and every
/// group above, innermost first. Reads `cpu.max` of the unified hierarchy or `cpu.cfs_quota_us` of the old one.
#[must_use]
pub fn cpu_groups(machine: &Machine, groups: &str) -> Vec<CpuGroup> {
    let mut found: Vec<CpuGroup> = Vec::new();
    for line in groups.lines().filter(|line| line.len() <= LONGEST_PATH) {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        // A path that leads up with dots is a group outside of what we can see.
        if path.split('/').any(|component| component == "..") {
            continue;
        }
        let unified = controllers.is_empty();
        let roots: &[&str] = match unified {
            true => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
            false if controllers.split(',').any(|c| c == "cpu") => {
                &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]
            }
            false => continue,
        };
        let mut path = path.trim_end_matches('/');
        loop {
            let group = roots.iter().find_map(|root| {
                let folder = format!("{root}{path}");
                let limit = read_limit(machine, &folder, unified)?;
                let cgroup = if path.is_empty() {
                    "/".into()
                } else {
                    path.to_owned()
                };
                Some(CpuGroup {
                    cgroup,
                    folder,
                    unified,
                    limit,
                })
            });
            found.extend(group);
            let Some((above, _)) = path.rsplit_once('/') else {
                break;
            };
            path = above;
        }
    }
    found
}

/// A group's current quota; `None` if it can have none, or is gone.
fn read_limit(machine: &Machine, folder: &str, unified: bool) -> Option<Option<QuotaLimit>> {
    let limit = if unified {
        unified_limit(&machine.read_trimmed(format!("{folder}/cpu.max")).ok()?)
    } else {
        let quota = machine.read_trimmed(format!("{folder}/cpu.cfs_quota_us"));
        let quota = quota.ok()?.parse().ok();
        let period = || machine.read_trimmed(format!("{folder}/cpu.cfs_period_us"));
        // A quota of -1 is no limit.
        quota.and_then(|quota_us| {
            Some(QuotaLimit {
                quota_us,
                period_us: period().ok()?.parse().ok()?,
            })
        })
    };
    Some(limit.filter(|limit| limit.period_us > 0))
}

/// `150000 100000` is one CPU and a half, `max 100000` is no limit.
fn unified_limit(text: &str) -> Option<QuotaLimit> {
    let (quota, period) = text.split_once(' ')?;
    Some(QuotaLimit {
        quota_us: quota.parse().ok()?,
        period_us: period.parse().ok()?,
    })
}

/// A group's throttling counters; `None` if the group is gone.
#[must_use]
pub fn read_throttling(machine: &Machine, folder: &str) -> Option<Throttling> {
    throttling(&machine.read(format!("{folder}/cpu.stat")).ok()?)
}

fn throttling(text: &str) -> Option<Throttling> {
    let number = |name: &str| -> Option<u64> {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.trim().parse().ok()
    };
    // The old hierarchy counts nanoseconds.
    let throttled_us =
        number("throttled_usec").or_else(|| Some(number("throttled_time")? / 1000))?;
    Some(Throttling {
        times: number("nr_throttled")?,
        throttled_us,
    })
}

/// A group's `cpu.stat`, kept open.
#[derive(Debug)]
pub struct CpuGroupCounts {
    machine: Machine,
    group: CpuGroup,
    stat: KeptFile,
}

impl CpuGroupCounts {
    #[must_use]
    pub fn of(machine: &Machine, group: CpuGroup) -> CpuGroupCounts {
        CpuGroupCounts {
            machine: machine.clone(),
            stat: KeptFile::of_one_record(machine, format!("{}/cpu.stat", group.folder)),
            group,
        }
    }

    /// Reads its throttling counters; `None` if the group is gone, or counts nothing.
    pub fn throttling(&mut self) -> Option<Throttling> {
        throttling(&self.stat.read().ok()?)
    }

    /// Reads its current quota; `None` if unlimited.
    #[must_use]
    pub fn limit(&self) -> Option<QuotaLimit> {
        let CpuGroup {
            folder, unified, ..
        } = &self.group;
        read_limit(&self.machine, folder, *unified).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Machine) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let machine = Machine::at(dir.path());
        (dir, machine)
    }

    fn quota(files: &[(&str, &str)]) -> Option<u64> {
        cpu_quota_millis(&machine(files).1)
    }

    #[test]
    fn the_tightest_of_all_groups_counts() {
        let own = ("proc/self/cgroup", "0::/a/b\n");
        let above = ("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
        assert_eq!(
            quota(&[own, above, ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n")]),
            Some(1500)
        );
        assert_eq!(
            quota(&[own, above, ("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n")]),
            Some(500)
        );
        assert_eq!(quota(&[own]), None);
    }

    #[test]
    fn the_old_hierarchy_is_read_too() {
        let own = ("proc/self/cgroup", "2:cpu,cpuacct:/box\n1:name=systemd:/\n");
        let period = ("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
        let with = |quota_text| {
            quota(&[
                own,
                period,
                ("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", quota_text),
            ])
        };
        assert_eq!(
            (with("200000\n"), with("-1\n"), with("x")),
            (Some(2000), None, None)
        );
        let no_period = ("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "0\n");
        assert_eq!(
            quota(&[
                own,
                no_period,
                ("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "1\n")
            ]),
            None
        );
    }

    #[test]
    fn the_groups_above_are_reported_innermost_first_and_none_outside() {
        let (_dir, machine) = machine(&[
            ("sys/fs/cgroup/pod/cpu.max", "200000 100000\n"),
            ("sys/fs/cgroup/pod/one/cpu.max", "50000 100000\n"),
            ("sys/fs/cgroup/cpu.max", "max 100000\n"),
        ]);
        let groups = |text: &str| -> Vec<String> {
            cpu_groups(&machine, text)
                .into_iter()
                .map(|group| format!("{} {}", group.cgroup, group.limit.is_some()))
                .collect()
        };
        assert_eq!(
            groups("0::/pod/one\n"),
            ["/pod/one true", "/pod true", "/ false"]
        );
        assert_eq!(
            groups("0::/../../pod/one\n1:cpuset:/pod\nnonsense"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn both_hierarchies_count_throttling_each_in_its_unit() {
        let (_dir, machine) = machine(&[
            (
                "new/cpu.stat",
                "usage_usec 9\nnr_periods 50\nnr_throttled 7\nthrottled_usec 1234\n",
            ),
            (
                "old/cpu.stat",
                "nr_periods 50\nnr_throttled 7\nthrottled_time 1234999\nwait_sum 3\n",
            ),
            ("none/cpu.stat", "usage_usec 9\n"),
        ]);
        let counted = Some(Throttling {
            times: 7,
            throttled_us: 1234,
        });
        let read = |folder| read_throttling(&machine, folder);
        assert_eq!(
            [read("/new"), read("/old"), read("/none"), read("/gone")],
            [counted, counted, None, None]
        );
    }
}
