//! A CPU quota above the measuring thread, used up in no time: its control group (version 1, where single threads
//! can be in groups) has a quota that is never used up, and for each injection a tight one for a moment.

use super::protocol::{DisturbSettings, Expectation, Injection};
use super::{DisturbError, Injector, Unavailable, needs_helper, pace};
use jitterscope_model::{CulpritKind, Nanos};
use jitterscope_platform::{Machine, TaskStat, clock, monotonic_now};
use std::time::Duration;

/// Where version 1 has its cpu controller.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];
/// How our groups' names begin; the process id of the child follows.
const NAME: &str = "jitterscope-selftest-";
/// More than a thread can use: two CPUs.
const AMPLE: &str = "40000";
const PERIOD: &str = "20000";
/// A tenth of a CPU.
const TIGHT: &str = "2000";
/// A recorder looks once a second which groups threads are in.
const UNTIL_SEEN: Duration = Duration::from_millis(1300);

pub(super) fn availability(
    machine: &Machine,
    settings: &DisturbSettings,
) -> Result<(), Unavailable> {
    needs_helper(settings)?;
    if settings.victim_tid.is_none() {
        return Err(Unavailable::NoVictim);
    }
    let root = root(machine).ok_or_else(|| {
        Unavailable::kernel("has no control group of version 1 with a cpu controller mounted")
    })?;
    match std::fs::OpenOptions::new()
        .write(true)
        .open(machine.path(format!("{root}/tasks")))
    {
        Ok(_) => Ok(()),
        Err(error) => Err(Unavailable::file(
            &format!("{root}/tasks"),
            &error,
            "moving a thread",
        )),
    }
}

fn root(machine: &Machine) -> Option<&'static str> {
    ROOTS
        .into_iter()
        .find(|root| machine.exists(format!("{root}/cpu.cfs_quota_us")))
}

/// The folder of a thread's own group.
fn own_group(machine: &Machine, root: &str, tid: i32) -> Option<String> {
    let text = machine.read(format!("/proc/{tid}/cgroup")).ok()?;
    let path = text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        let path = fields.next()?;
        controllers
            .split(',')
            .any(|controller| controller == "cpu")
            .then_some(path)
    })?;
    let outside = path.split('/').any(|component| component == "..");
    (!outside).then(|| format!("{root}{}", path.trim_end_matches('/')))
}

/// See the module.
pub(super) struct Quota {
    settings: DisturbSettings,
    machine: Machine,
    victim: i32,
    /// Where the thread was.
    before: String,
    group: String,
    waited: bool,
}

impl Quota {
    pub(super) fn new(settings: &DisturbSettings) -> Result<Quota, DisturbError> {
        let machine = Machine::host();
        let missing = || {
            DisturbError::Unavailable("the measuring thread's control group is not known".into())
        };
        let victim = settings.victim_tid.ok_or_else(missing)?;
        let root = root(&machine).ok_or_else(missing)?;
        remove_leftover_groups(&machine);
        let before = own_group(&machine, root, victim).ok_or_else(missing)?;
        let group = format!("{before}/{NAME}{}", std::process::id());
        std::fs::create_dir(machine.path(&group)).map_err(|source| {
            jitterscope_platform::FileError {
                path: machine.path(&group),
                source,
            }
        })?;
        // From here on the drop puts everything back.
        let quota = Quota {
            settings: settings.clone(),
            machine,
            victim,
            before,
            group,
            waited: false,
        };
        quota
            .machine
            .write(format!("{}/cpu.cfs_period_us", quota.group), PERIOD)?;
        quota.set(AMPLE)?;
        quota
            .machine
            .write(format!("{}/tasks", quota.group), &victim.to_string())?;
        Ok(quota)
    }

    fn set(&self, quota: &str) -> Result<(), DisturbError> {
        Ok(self
            .machine
            .write(format!("{}/cpu.cfs_quota_us", self.group), quota)?)
    }
}

impl Injector for Quota {
    fn expectation(&self, _comm: &str, _tid: i32) -> Expectation {
        Expectation {
            kind: CulpritKind::Quota,
            name: "CPU quota".into(),
            sender: None,
        }
    }

    fn begin(&mut self) -> Result<(), DisturbError> {
        let until = Nanos(u64::try_from(UNTIL_SEEN.as_nanos()).unwrap_or(u64::MAX));
        self.waited = pace::sleep_until(monotonic_now() + until)?;
        Ok(())
    }

    fn inject(&mut self, deadline: Nanos) -> Result<Option<Injection>, DisturbError> {
        if !self.waited || !pace::sleep_until(deadline)? {
            return Ok(None);
        }
        let start_ticks = clock::now(self.settings.clock);
        self.set(TIGHT)?;
        let slept = pace::sleep_until(monotonic_now() + self.settings.length);
        self.set(AMPLE)?;
        let end_ticks = clock::now(self.settings.clock);
        slept?;
        Ok(Some(Injection {
            start_ticks,
            end_ticks,
            length_ticks: None,
        }))
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // Where the thread has ended, there is nothing to move.
        let _ = self
            .machine
            .write(format!("{}/tasks", self.before), &self.victim.to_string());
        let _ = std::fs::remove_dir(self.machine.path(&self.group));
    }
}

/// How deep groups are looked for, and how many are looked into: whoever may make groups can make many.
const DEPTH: usize = 8;
const MOST_FOLDERS: usize = 4096;

/// Groups of children that were killed, wherever a selftest ran: it may have been in another group than this process.
#[must_use]
pub fn leftover_groups(machine: &Machine) -> Vec<String> {
    let Some(root) = root(machine) else {
        return Vec::new();
    };
    let dead = |name: &str| {
        let pid = name
            .strip_prefix(NAME)
            .filter(|pid| pid.parse::<u32>().is_ok());
        pid.is_some_and(|pid| !is_alive(machine, pid))
    };
    let mut found = Vec::new();
    let mut level = vec![root.to_owned()];
    let mut looked_into = 0;
    for _ in 0..DEPTH {
        let mut below = Vec::new();
        for folder in level.iter().take(MOST_FOLDERS - looked_into) {
            looked_into += 1;
            for name in machine.list(folder) {
                let path = format!("{folder}/{name}");
                // Other users may have been given groups to make more in; those are theirs.
                if !is_own_folder(&machine.path(&path)) {
                    continue;
                }
                if dead(&name) {
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

/// Whether it is a folder, and belongs to whom we run as.
fn is_own_folder(path: &std::path::Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let ours = rustix::process::geteuid().as_raw();
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == ours)
}

/// Removes them, after moving threads out of them to the group above: the kernel removes none that has a thread in
/// it. Returns those that are gone, and those that are not.
pub fn remove_leftover_groups(machine: &Machine) -> (Vec<String>, Vec<String>) {
    leftover_groups(machine).into_iter().partition(|group| {
        let above = group
            .rsplit_once('/')
            .map_or(group.as_str(), |(above, _)| above);
        for tid in machine
            .read(format!("{group}/tasks"))
            .unwrap_or_default()
            .lines()
        {
            let _ = machine.write(format!("{above}/tasks"), tid);
        }
        std::fs::remove_dir(machine.path(group)).is_ok()
    })
}

/// Whether there is such a process; one that was killed and is not yet reaped is none.
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
        // 9 lives, 8 is a corpse.
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
}
