//! How much CPU time control groups grant.

use crate::machine::Machine;
use jitterscope_model::QuotaLimit;

/// The longest path of a control group that is looked at, bytes: whoever may make groups chooses their names.
const LONGEST_PATH: usize = 4096;

/// A control group with a CPU quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuQuota {
    /// The group, as `/proc/PID/cgroup` names it; `/` is the topmost that can be seen from here.
    pub cgroup: String,
    /// Its folder, as the kernel offers it.
    pub folder: String,
    /// Whether it is of the unified hierarchy (version 2).
    pub unified: bool,
    /// What it grants.
    pub limit: QuotaLimit,
}

/// What a group's `cpu.stat` counts of its throttling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which it was throttled.
    pub times: u64,
    /// For how long, summed over the CPUs, microseconds.
    pub throttled_us: u64,
}

/// The tightest CPU quota above this process, in thousandths of a CPU; `None` when there is none.
#[must_use]
pub fn cpu_quota_millis(machine: &Machine) -> Option<u64> {
    let groups = machine.read("/proc/self/cgroup").unwrap_or_default();
    cpu_quotas(machine, &groups)
        .iter()
        .filter_map(|quota| quota.limit.millis())
        .min()
}

/// The CPU quotas above whoever has these groups, in the words of `/proc/PID/cgroup`: those of its own groups and
/// of every group above, innermost first. Read from `cpu.max` of the unified hierarchy or `cpu.cfs_quota_us` of
/// the old one.
#[must_use]
pub fn cpu_quotas(machine: &Machine, groups: &str) -> Vec<CpuQuota> {
    let mut found: Vec<CpuQuota> = Vec::new();
    for line in groups.lines().filter(|line| line.len() <= LONGEST_PATH) {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        // A group outside of what we can see leads up with dots.
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
            let limited = roots.iter().find_map(|root| {
                let folder = format!("{root}{path}");
                let limit = read_limit(machine, &folder, unified)?;
                let cgroup = if path.is_empty() {
                    "/".into()
                } else {
                    path.to_owned()
                };
                Some(CpuQuota {
                    cgroup,
                    folder,
                    unified,
                    limit,
                })
            });
            found.extend(limited);
            let Some((above, _)) = path.rsplit_once('/') else {
                break;
            };
            path = above;
        }
    }
    found
}

/// What a group grants now; `None` when that is no limit, or the group is gone.
#[must_use]
pub fn read_limit(machine: &Machine, folder: &str, unified: bool) -> Option<QuotaLimit> {
    let limit = if unified {
        unified_limit(machine, folder)
    } else {
        old_limit(machine, folder)
    }?;
    (limit.period_us > 0).then_some(limit)
}

/// What a group's `cpu.stat` counts; `None` when the group is gone.
#[must_use]
pub fn read_throttling(machine: &Machine, folder: &str) -> Option<Throttling> {
    let text = machine.read(format!("{folder}/cpu.stat")).ok()?;
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

/// `150000 100000` is one CPU and a half, `max 100000` is no limit.
fn unified_limit(machine: &Machine, folder: &str) -> Option<QuotaLimit> {
    let text = machine.read_trimmed(format!("{folder}/cpu.max")).ok()?;
    let (quota, period) = text.split_once(' ')?;
    Some(QuotaLimit {
        quota_us: quota.parse().ok()?,
        period_us: period.parse().ok()?,
    })
}

/// A quota of -1 is no limit.
fn old_limit(machine: &Machine, folder: &str) -> Option<QuotaLimit> {
    let number = |name: &str| {
        machine
            .read_trimmed(format!("{folder}/{name}"))
            .ok()?
            .parse()
            .ok()
    };
    Some(QuotaLimit {
        quota_us: number("cpu.cfs_quota_us")?,
        period_us: number("cpu.cfs_period_us")?,
    })
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
            cpu_quotas(&machine, text)
                .into_iter()
                .map(|quota| quota.cgroup)
                .collect()
        };
        assert_eq!(groups("0::/pod/one\n"), ["/pod/one", "/pod"]);
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
