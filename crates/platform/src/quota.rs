//! How much CPU time the control groups of this process grant.

use crate::machine::Machine;

/// The tightest CPU quota above this process, in thousandths of a CPU; `None` when there is none. Read from
/// `cpu.max` of the unified hierarchy or `cpu.cfs_quota_us` of the old one, of its own group and of every
/// group above.
#[must_use]
pub fn cpu_quota_millis(machine: &Machine) -> Option<u64> {
    let groups = machine.read("/proc/self/cgroup").unwrap_or_default();
    let mut tightest = None;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
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
            for root in roots {
                let folder = format!("{root}{path}");
                let quota =
                    if unified { unified_quota(machine, &folder) } else { old_quota(machine, &folder) };
                tightest = match (tightest, quota) {
                    (Some(a), Some(b)) => Some(std::cmp::min::<u64>(a, b)),
                    (a, b) => a.or(b),
                };
            }
            let Some((above, _)) = path.rsplit_once('/') else { break };
            path = above;
        }
    }
    tightest
}

/// `150000 100000` is one CPU and a half, `max 100000` is no limit.
fn unified_quota(machine: &Machine, folder: &str) -> Option<u64> {
    let text = machine.read_trimmed(format!("{folder}/cpu.max")).ok()?;
    let (quota, period) = text.split_once(' ')?;
    ratio(quota.parse().ok()?, period.parse().ok()?)
}

/// A quota of -1 is no limit.
fn old_quota(machine: &Machine, folder: &str) -> Option<u64> {
    let number = |name: &str| machine.read_trimmed(format!("{folder}/{name}")).ok()?.parse().ok();
    ratio(number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
}

fn ratio(quota: i64, period: i64) -> Option<u64> {
    let (quota, period) = (u64::try_from(quota).ok()?, u64::try_from(period).ok()?);
    quota.checked_mul(1000)?.checked_div(period)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn quota(files: &[(&str, &str)]) -> Option<u64> {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        cpu_quota_millis(&Machine::at(dir.path()))
    }

    #[test]
    fn the_tightest_of_all_groups_counts() {
        let own = ("proc/self/cgroup", "0::/a/b\n");
        let above = ("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
        assert_eq!(quota(&[own, above, ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n")]), Some(1500));
        assert_eq!(quota(&[own, above, ("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n")]), Some(500));
        assert_eq!(quota(&[own]), None);
    }

    #[test]
    fn the_old_hierarchy_is_read_too() {
        let own = ("proc/self/cgroup", "2:cpu,cpuacct:/box\n1:name=systemd:/\n");
        let period = ("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
        let with = |quota_text| quota(&[own, period, ("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", quota_text)]);
        assert_eq!((with("200000\n"), with("-1\n"), with("x")), (Some(2000), None, None));
        let no_period = ("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "0\n");
        assert_eq!(quota(&[own, no_period, ("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "1\n")]), None);
    }
}
