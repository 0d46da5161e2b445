//! Checks that need more than one file's value, and wanted values that need a calculation.

use crate::finding::{Finding, Program, Queues};
use crate::glob;
use crate::goal::Goal;
use crate::knob::{Look, Spot};
use crate::knob_reason::KnobReason;
use crate::threads;
use crate::wanted::Wanted;
use jitterscope_model::{CpuId, CpuSet, PutInOrder};
use jitterscope_platform::{Machine, TaskStat};

/// Maximum exit latency of an acceptable idle state, microseconds.
const SHALLOW_US: u64 = 2;

pub(super) fn program_only(_: &Machine, _: &Goal) -> Look {
    Look::NotApplicable(KnobReason::ProgramsOwn)
}

pub(super) fn pinned(_: &Machine, _: &Goal) -> Look {
    Look::NotApplicable(KnobReason::OwnersUnknown)
}

/// Why a wrong value does not matter on this machine.
pub(super) fn moot(knob: &str, machine: &Machine, goal: &Goal) -> Option<KnobReason> {
    let (is_moot, why) = match knob {
        "aspm" => (
            cpu_has(machine, &["hypervisor"]) == Some(true),
            KnobReason::LinksOfHost,
        ),
        "rcu-patience" => (
            !has_full_dynticks(machine, goal),
            KnobReason::NoFullDynticks,
        ),
        _ => return None,
    };
    is_moot.then_some(why)
}

fn has_full_dynticks(machine: &Machine, goal: &Goal) -> bool {
    let full: CpuSet = machine
        .read_trimmed("/sys/devices/system/cpu/nohz_full")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or_default();
    !full.intersection(&goal.isolated).is_empty()
}

pub(super) fn tick_dependency(machine: &Machine, goal: &Goal) -> Look {
    Look::NotApplicable(if has_full_dynticks(machine, goal) {
        KnobReason::TickInRecording
    } else {
        KnobReason::NoFullDynticks
    })
}

pub(super) fn cpu_quota(machine: &Machine, _: &Goal) -> Look {
    let mut limited = Vec::new();
    let mut seen = false;
    // Groups nest without limit; in practice three levels contain every service, container and pod.
    for depth in ["", "/*", "/*/*", "/*/*/*"] {
        for (file, free) in [("cpu.max", "max"), ("cpu.cfs_quota_us", "-1")] {
            for root in [
                "/sys/fs/cgroup",
                "/sys/fs/cgroup/cpu",
                "/sys/fs/cgroup/unified",
                "/sys/fs/cgroup/cpu,cpuacct",
            ] {
                for path in glob::files(machine, &format!("{root}{depth}/{file}")) {
                    let Ok(text) = machine.read_trimmed(&path) else {
                        continue;
                    };
                    seen = true;
                    if !text.starts_with(free) && !limited.contains(&path) {
                        limited.push(path);
                    }
                }
            }
        }
    }
    match (seen, limited.first()) {
        (false, _) => Look::NotApplicable(KnobReason::NoQuotaPossible),
        (true, None) => Look::Fine(Finding::NoQuota),
        (true, Some(first)) => Look::Wrong(
            Finding::Quotas {
                groups: limited.len(),
                first: first.clone(),
            },
            Wanted::NoQuota,
        ),
    }
}

fn running(machine: &Machine, names: &[&str]) -> Vec<Program> {
    let mut found: Vec<Program> = threads::processes(machine)
        .into_iter()
        .filter(|(_, comm)| names.iter().any(|name| glob::matches(name, comm)))
        .map(|(pid, comm)| Program { comm, pid })
        .collect();
    found.put_in_order();
    found
}

pub(super) fn irqbalance(machine: &Machine, goal: &Goal) -> Look {
    let found = running(machine, &["irqbalance"]);
    if found.is_empty() {
        return Look::Fine(Finding::IrqbalanceStopped);
    }
    let banned: CpuSet = ["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"]
        .iter()
        .filter_map(|path| machine.read(path).ok())
        .flat_map(|text| {
            text.lines()
                .filter_map(|line| {
                    line.trim()
                        .strip_prefix("IRQBALANCE_BANNED_CPULIST=")
                        .map(str::to_owned)
                })
                .collect::<Vec<_>>()
        })
        .filter_map(|list| list.trim_matches('"').parse::<CpuSet>().ok())
        .flat_map(|set| set.iter().collect::<Vec<_>>())
        .collect();
    if goal.isolated.difference(&banned).is_empty() {
        Look::Fine(Finding::IrqbalanceKeptOff { banned })
    } else {
        Look::Wrong(
            Finding::IrqbalanceRuns { programs: found },
            Wanted::IrqbalanceOff {
                cpus: goal.isolated.clone(),
            },
        )
    }
}

pub(super) fn nic_queues(machine: &Machine, goal: &Goal) -> Look {
    let mut many = Vec::new();
    let mut devices = 0;
    for path in glob::files(machine, "/sys/class/net/*/queues") {
        let queues = machine
            .list(&path)
            .iter()
            .filter(|name| name.starts_with("rx-"))
            .count();
        devices += usize::from(queues > 1);
        if queues > goal.housekeeping.len() && queues > 1 {
            let device = path.split('/').nth(4).unwrap_or_default().to_owned();
            many.push(Queues { device, queues });
        }
    }
    if devices == 0 {
        Look::NotApplicable(KnobReason::NoReceiveQueues)
    } else if many.is_empty() {
        Look::Fine(Finding::QueuesFit)
    } else {
        Look::Wrong(
            Finding::TooManyQueues { devices: many },
            Wanted::QueuesAtMost {
                most: goal.housekeeping.len(),
            },
        )
    }
}

pub(super) fn watchdog_cpus(spot: Spot<'_>) -> Option<String> {
    let off = ["watchdog", "soft_watchdog"].iter().any(|name| {
        spot.machine
            .read_trimmed(format!("/proc/sys/kernel/{name}"))
            .is_ok_and(|v| v == "0")
    });
    let now: CpuSet = spot.current.parse().unwrap_or_default();
    if off || now.intersection(&spot.goal.isolated).is_empty() {
        return None;
    }
    let rest = now.difference(&spot.goal.isolated);
    Some(if rest.is_empty() {
        spot.goal.housekeeping.to_string()
    } else {
        rest.to_string()
    })
}

pub(super) fn perf_users(machine: &Machine, _: &Goal) -> Look {
    let (mut users, mut denied) = (Vec::new(), false);
    let me = std::process::id().to_string();
    for (pid, comm) in threads::processes(machine) {
        let folder = machine.path(format!("/proc/{pid}/fd"));
        let Ok(entries) = std::fs::read_dir(&folder) else {
            denied |= folder.exists();
            continue;
        };
        let open = entries
            .flatten()
            .filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .any(|target| target.to_string_lossy().contains("[perf_event]"));
        if open && pid.to_string() != me {
            users.push(Program { comm, pid });
        }
    }
    match (users.is_empty(), denied) {
        (false, _) => Look::Wrong(
            Finding::PerfEvents { programs: users },
            Wanted::NoPerfEvents,
        ),
        (true, true) => Look::Denied(KnobReason::OtherUsersFiles),
        (true, false) => Look::Fine(Finding::NoPerfEvents),
    }
}

pub(super) fn frequency_driver(machine: &Machine, _: &Goal) -> Look {
    match machine.read_trimmed("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver") {
        Ok(driver) => Look::NotApplicable(KnobReason::FrequencyDriver { driver }),
        Err(_) => Look::Unavailable(KnobReason::NoFrequencyDriver),
    }
}

pub(super) fn deep_idle_states(spot: Spot<'_>) -> Option<String> {
    let latency = spot
        .path
        .strip_suffix("/disable")
        .map(|state| format!("{state}/latency"))?;
    let us: u64 = spot.machine.read_trimmed(latency).ok()?.parse().ok()?;
    (us > SHALLOW_US && spot.current.trim() == "0").then(|| "1".to_owned())
}

pub(super) fn swappiness(spot: Spot<'_>) -> Option<String> {
    let devices = spot
        .machine
        .read("/proc/swaps")
        .map_or(0, |text| text.lines().skip(1).count());
    let now: i64 = spot.current.trim().parse().ok()?;
    (devices > 0 && now > 10).then(|| "1".to_owned())
}

pub(super) fn msr_pollers(machine: &Machine, _: &Goal) -> Look {
    none_runs(
        machine,
        &["turbostat", "pcm*", "i7z", "cpupower", "intel-speed-sel*"],
    )
}

fn none_runs(machine: &Machine, names: &[&str]) -> Look {
    let found = running(machine, names);
    if found.is_empty() {
        Look::Fine(Finding::NoneRuns)
    } else {
        Look::Wrong(Finding::Running { programs: found }, Wanted::NoneRuns)
    }
}

/// Kernel threads that do the work of interrupts and of RCU on their CPU.
const DEFERRED_WORK: &[&str] = &["ksoftirqd/*", "ktimers/*", "rcuc/*"];

pub(super) fn softirq_priority(machine: &Machine, goal: &Goal) -> Look {
    let of_these_cpus = |thread: &Program| {
        let cpu = thread
            .comm
            .rsplit('/')
            .next()
            .and_then(|cpu| cpu.parse().ok());
        cpu.is_some_and(|cpu| goal.isolated.contains(CpuId(cpu)))
    };
    let priority = |thread: &Program| TaskStat::of(machine, thread.pid)?.real_time_priority();
    let here: Vec<Program> = running(machine, DEFERRED_WORK)
        .into_iter()
        .filter(of_these_cpus)
        .collect();
    let urgent = |thread: &Program| priority(thread).is_some_and(|priority| priority > 1);
    match (here.is_empty(), here.iter().any(urgent)) {
        (true, _) => Look::Unavailable(KnobReason::KernelThreadsHidden),
        (false, false) => Look::Fine(Finding::NoRealTime),
        (false, true) => Look::Wrong(
            Finding::RealTime {
                threads: here.into_iter().filter(urgent).collect(),
            },
            Wanted::NoRealTime,
        ),
    }
}

pub(super) fn stalld(machine: &Machine, _: &Goal) -> Look {
    none_runs(machine, &["stalld"])
}

/// The first number of `kernel.printk`: messages with this or a higher level number do not go to the console.
pub(super) fn console_level(spot: Spot<'_>) -> Option<String> {
    const WARNING: u32 = 4;
    let (level, rest) = spot.current.split_once(char::is_whitespace)?;
    (level.parse::<u32>().ok()? > WARNING).then(|| format!("{WARNING}\t{rest}"))
}

pub(super) fn io_scheduler(spot: Spot<'_>) -> Option<String> {
    let rotates = spot.path.strip_suffix("scheduler").is_some_and(|queue| {
        let rotational = spot.machine.read_trimmed(format!("{queue}rotational"));
        rotational.is_ok_and(|text| text == "1")
    });
    let offered = spot.current.split_whitespace().any(|name| name == "none");
    (offered && !rotates).then(|| "none".to_owned())
}

/// A driver without the governor refuses it.
pub(super) fn performance_governor(spot: Spot<'_>) -> Option<String> {
    const WANTED: &str = "performance";
    let available = spot
        .path
        .strip_suffix("scaling_governor")
        .and_then(|folder| {
            let path = format!("{folder}scaling_available_governors");
            spot.machine.read_trimmed(path).ok()
        });
    let lacks = available.is_some_and(|names| names.split_whitespace().all(|name| name != WANTED));
    (spot.current.trim() != WANTED && !lacks).then(|| WANTED.to_owned())
}

/// Whether `/proc/cpuinfo` lists one of these flags; `None` if it cannot be read.
fn cpu_has(machine: &Machine, flags: &[&str]) -> Option<bool> {
    let info = machine.read("/proc/cpuinfo").ok()?;
    let line = info
        .lines()
        .find(|line| line.starts_with("flags") || line.starts_with("Features"))?;
    Some(line.split_whitespace().any(|word| flags.contains(&word)))
}

pub(super) fn cache_allocation(machine: &Machine, _: &Goal) -> Look {
    if machine.exists("/sys/fs/resctrl/schemata") {
        return Look::NotApplicable(KnobReason::ResctrlMounted);
    }
    match cpu_has(machine, &["cat_l3", "cat_l2"]) {
        Some(true) => Look::NotApplicable(KnobReason::CacheAllocationPossible),
        _ => Look::Unavailable(KnobReason::NoCacheAllocation),
    }
}

pub(super) fn system_management(machine: &Machine, _: &Goal) -> Look {
    match cpu_has(machine, &["hypervisor"]) {
        Some(true) => Look::Unavailable(KnobReason::FirmwareBelowHost),
        _ => Look::NotApplicable(KnobReason::FirmwareHidden),
    }
}

pub(super) fn host(machine: &Machine, _: &Goal) -> Look {
    match cpu_has(machine, &["hypervisor"]) {
        Some(true) => Look::NotApplicable(KnobReason::HostHidden),
        Some(false) => Look::NotApplicable(KnobReason::NoVirtualMachine),
        None => Look::Unavailable(KnobReason::ProcessorUnknown),
    }
}

pub(super) fn kvm_host(machine: &Machine, _: &Goal) -> Look {
    let guests = running(
        machine,
        &["qemu*", "kvm*", "firecracker", "cloud-hypervisor*"],
    );
    if guests.is_empty() {
        return Look::NotApplicable(KnobReason::NoGuests);
    }
    match machine.read_trimmed("/sys/module/kvm/parameters/kvmclock_periodic_sync") {
        Ok(value) if value == "Y" => Look::Wrong(
            Finding::KvmClockSync { value },
            Wanted::Value { value: "N" },
        ),
        Ok(value) => Look::Fine(Finding::KvmClockSync { value }),
        Err(_) => Look::Unavailable(KnobReason::KvmUnreadable),
    }
}

#[cfg(test)]
#[path = "observed_tests.rs"]
mod tests;
