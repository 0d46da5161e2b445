//! The state of the machine that any command could change, as the kernel shows it and not as the program reports it.

use anyhow::{Context, ensure};
use jitterscope_platform::Machine;
use jitterscope_tune::glob;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

/// Files that knobs and disturbances write.
const FILES: &[&str] = &[
    "/proc/irq/*/smp_affinity_list",
    "/proc/irq/default_smp_affinity",
    "/proc/sys/kernel/*",
    "/proc/sys/vm/*",
    "/proc/sys/net/core/*",
    "/sys/kernel/rcu_normal",
    "/sys/kernel/rcu_expedited",
    "/sys/kernel/mm/ksm/run",
    "/sys/kernel/mm/transparent_hugepage/*",
    "/sys/devices/virtual/workqueue/cpumask",
    "/sys/devices/virtual/workqueue/*/cpumask",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us",
    "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable",
    "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    "/sys/module/pcie_aspm/parameters/policy",
    "/sys/block/*/queue/rq_affinity",
    "/sys/class/net/*/threaded",
    "/sys/class/net/*/flags",
    "/sys/class/net/*/queues/rx-*/rps_cpus",
    "/sys/fs/cgroup/cpuset/cpuset.*",
];

/// Sysctls that are counters, random or write-only.
const RESTLESS: &[&str] = &[
    "*/random*",
    "*/ns_last_pid",
    "*/pty*",
    "*/drop_caches",
    "*/compact_memory",
    "*/stat_refresh",
];

/// File systems that we mount or mount on; others may come and go.
const MOUNTS: &[&str] = &[
    "tracefs", "debugfs", "cgroup", "cgroup2", "cpuset", "sysfs", "nsfs",
];

/// The values in the top level of tracefs, each in a line, and the owners of its instances. It is mounted in a separate
/// mount namespace: a mount that stays would hide that the program forgets its own.
const LOOK: &str = r#"
cd /sys/kernel/tracing || exit 1
[ -e tracing_on ] || { mount -t tracefs torture . && cd /sys/kernel/tracing; } || exit 1
for file in tracing_on current_tracer trace_clock set_event set_event_pid events/enable tracing_cpumask \
    buffer_size_kb trace_options; do
    [ -r $file ] && echo "$file: $(tr '\n' ' ' <$file)"
done
for instance in instances/*; do
    [ -d "$instance" ] || continue
    flock --nonblock --shared "$instance" true && echo "instance nobody's $instance" || echo "instance held"
done
"#;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part(BTreeMap<String, String>);

pub struct Snapshot {
    /// The tracing setup, all of which must be the same.
    pub tracing: Part,
    /// Other things: none may be new or gone.
    things: Part,
    /// Values. Threads and devices may come and go.
    values: Part,
}

impl Snapshot {
    pub fn take() -> anyhow::Result<Snapshot> {
        Ok(Snapshot {
            tracing: tracing()?,
            things: things(),
            values: values(&Machine::host()),
        })
    }

    pub fn differences(&self, now: &Snapshot) -> Vec<String> {
        let mut all = self.tracing.differences(&now.tracing);
        all.extend(self.things.differences(&now.things));
        all.extend(self.values.changes(&now.values));
        all
    }
}

impl Part {
    /// New, missing and changed entries.
    pub fn differences(&self, now: &Part) -> Vec<String> {
        let new = now
            .0
            .keys()
            .filter(|key| !self.0.contains_key(*key))
            .map(|key| format!("new: {key}"));
        let gone = self
            .0
            .keys()
            .filter(|key| !now.0.contains_key(*key))
            .map(|key| format!("gone: {key}"));
        self.changes(now)
            .into_iter()
            .chain(new)
            .chain(gone)
            .collect()
    }

    /// Changed entries of those in both.
    fn changes(&self, now: &Part) -> Vec<String> {
        let other = |(key, was): (&String, &String)| {
            now.0
                .get(key)
                .filter(|is| *is != was)
                .map(|is| format!("{key}: {was:?} -> {is:?}"))
        };
        self.0.iter().filter_map(other).collect()
    }
}

/// Instances, the top level of tracefs, and mounts.
pub fn tracing() -> anyhow::Result<Part> {
    let look = Command::new("unshare")
        .args(["--mount", "sh", "-c", LOOK])
        .output();
    let look = look.context("unshare(1) cannot be started")?;
    let said = String::from_utf8_lossy(&look.stderr);
    ensure!(look.status.success(), "tracefs cannot be looked at: {said}");
    let text = String::from_utf8_lossy(&look.stdout).into_owned();
    // A locked instance belongs to another working process.
    let lines = text.lines().filter(|line| *line != "instance held");
    let mut part: BTreeMap<String, String> = lines
        .map(|line| line.split_once(": ").unwrap_or((line, "")))
        .map(|(file, value)| (format!("tracefs {file}"), value.to_owned()))
        .collect();
    let mounts = fs::read_to_string("/proc/self/mountinfo").context("/proc/self/mountinfo")?;
    for line in mounts.lines() {
        let kind = line
            .split_once(" - ")
            .and_then(|(_, rest)| rest.split(' ').next())
            .unwrap_or_default();
        // Tests that run beside this mount file systems of their own.
        let of_tests = line.contains(" jitterscope-test ");
        if (MOUNTS.contains(&kind) || line.contains("jitterscope")) && !of_tests {
            part.insert(format!("mount {line}"), String::new());
        }
    }
    Ok(Part(part))
}

/// Groups, notes and named networks.
fn things() -> Part {
    let mut all = BTreeSet::new();
    walk("/sys/fs/cgroup", 4, true, &mut all);
    walk("/run/jitterscope", 4, false, &mut all);
    walk("/run/netns", 1, false, &mut all);
    Part(all.into_iter().map(|path| (path, String::new())).collect())
}

fn walk(folder: &str, depth: u32, only_folders: bool, all: &mut BTreeSet<String>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path().to_string_lossy().into_owned();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && depth > 1 {
            walk(&path, depth - 1, only_folders, all);
        }
        // Empty folders of notes and a lock may stay.
        let counts = if only_folders {
            is_folder
        } else {
            !is_folder && !path.ends_with("/lock")
        };
        if counts {
            all.insert(path);
        }
    }
}

/// Knobs, and the affinities of kernel threads.
fn values(machine: &Machine) -> Part {
    let mut all = BTreeMap::new();
    for pattern in FILES {
        for path in glob::files(machine, pattern) {
            let restless = RESTLESS
                .iter()
                .any(|restless| glob::matches(restless, &path));
            if let (false, Ok(text)) = (restless, machine.read(&path)) {
                all.insert(path, text);
            }
        }
    }
    for path in glob::files(machine, "/proc/*/status") {
        let Ok(text) = machine.read(&path) else {
            continue;
        };
        let of = |key: &str| {
            text.lines()
                .find(|line| line.starts_with(key))
                .unwrap_or_default()
                .to_owned()
        };
        // Workers start and end at any time.
        if of("Kthread:").ends_with('1') && !of("Name:").contains("kworker") {
            all.insert(format!("{path} {}", of("Name:")), of("Cpus_allowed_list:"));
        }
    }
    Part(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(entries: &[(&str, &str)]) -> Part {
        Part(
            entries
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn what_is_new_gone_or_other_is_reported() {
        let (before, after) = (
            part(&[("a", "1"), ("b", "1")]),
            part(&[("b", "2"), ("c", "1")]),
        );
        assert_eq!(
            before.differences(&after),
            ["b: \"1\" -> \"2\"", "new: c", "gone: a"]
        );
        assert_eq!(before.changes(&after), ["b: \"1\" -> \"2\""]);
        assert!(before.differences(&before).is_empty());
    }
}
