//! Checks on machines made of a few files.

use super::*;
use crate::fake_machine::{FakeMachine, goal};
use std::os::unix::fs::symlink;

fn look(of: fn(&Machine, &Goal) -> Look, files: &[(&str, &str)]) -> Look {
    of(&FakeMachine::of(files).machine, &goal("2-3", "0-1"))
}

/// The wanted value for `current` in `path`.
fn ask(
    of: fn(Spot<'_>) -> Option<String>,
    files: &[(&str, &str)],
    path: &str,
    current: &str,
) -> Option<String> {
    of(Spot {
        machine: &FakeMachine::of(files).machine,
        goal: &goal("2-3", "0-1"),
        path,
        current,
    })
}

fn program(comm: &str, pid: i32) -> Program {
    Program {
        comm: comm.into(),
        pid,
    }
}

fn reason(look: Look) -> KnobReason {
    match look {
        Look::NotApplicable(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_only_a_recording_shows_is_said_to_be_so() {
    assert_eq!(reason(look(program_only, &[])), KnobReason::ProgramsOwn);
    let full = "/sys/devices/system/cpu/nohz_full";
    assert_eq!(
        reason(look(tick_dependency, &[])),
        KnobReason::NoFullDynticks
    );
    assert_eq!(
        reason(look(tick_dependency, &[(full, "0-1\n")])),
        KnobReason::NoFullDynticks
    );
    assert_eq!(
        reason(look(tick_dependency, &[(full, "3\n")])),
        KnobReason::TickInRecording
    );
}

#[test]
fn groups_with_a_quota_are_counted_on_three_levels_once() {
    let one = ("/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
    let free = ("/sys/fs/cgroup/b/cpu.max", "max 100000\n");
    let old = ("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "20000\n");
    let old_free = ("/sys/fs/cgroup/cpu/y/cpu.cfs_quota_us", "-1\n");
    let deep = ("/sys/fs/cgroup/a/b/c/d/cpu.max", "50000 100000\n");
    assert_eq!(reason(look(cpu_quota, &[])), KnobReason::NoQuotaPossible);
    assert_eq!(
        look(cpu_quota, &[free, old_free, deep]),
        Look::Fine(Finding::NoQuota)
    );
    let wrong = |groups| {
        Look::Wrong(
            Finding::Quotas {
                groups,
                first: one.0.into(),
            },
            Wanted::NoQuota,
        )
    };
    assert_eq!(look(cpu_quota, &[one, free]), wrong(1));
    assert_eq!(look(cpu_quota, &[one, old, old_free]), wrong(2));
}

#[test]
fn irqbalance_is_wrong_where_it_runs_and_is_not_kept_off() {
    let run = ("/proc/77/comm", "irqbalance\n");
    let config = |text| ("/etc/default/irqbalance", text);
    assert_eq!(
        look(irqbalance, &[("/proc/77/comm", "bash\n")]),
        Look::Fine(Finding::IrqbalanceStopped)
    );
    let programs = vec![program("irqbalance", 77)];
    let cpus = || "2-3".parse::<CpuSet>().unwrap();
    assert_eq!(
        look(irqbalance, &[run]),
        Look::Wrong(
            Finding::IrqbalanceRuns { programs },
            Wanted::IrqbalanceOff { cpus: cpus() }
        )
    );
    let all = config("# x\n  IRQBALANCE_BANNED_CPULIST=\"2-3\"\n");
    assert_eq!(
        look(irqbalance, &[run, all]),
        Look::Fine(Finding::IrqbalanceKeptOff { banned: cpus() })
    );
    // Only one of the two CPUs; a comment.
    for text in [
        "IRQBALANCE_BANNED_CPULIST=2\n",
        "#IRQBALANCE_BANNED_CPULIST=2-3\n",
    ] {
        assert!(
            matches!(look(irqbalance, &[run, config(text)]), Look::Wrong(..)),
            "{text}"
        );
    }
    // The bans of several files add up.
    let rest = ("/etc/sysconfig/irqbalance", "IRQBALANCE_BANNED_CPULIST=3\n");
    assert!(matches!(
        look(
            irqbalance,
            &[run, config("IRQBALANCE_BANNED_CPULIST=2\n"), rest]
        ),
        Look::Fine(_)
    ));
}

#[test]
fn receive_queues_beyond_the_housekeeping_cpus_are_too_many() {
    let queue = |device: &str, name: &str| format!("/sys/class/net/{device}/queues/{name}/x");
    let found = |queues: &[(&str, &str)]| {
        let files: Vec<String> = queues
            .iter()
            .map(|(device, name)| queue(device, name))
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|path| (path.as_str(), "")).collect();
        look(nic_queues, &files)
    };
    let none = Look::NotApplicable(KnobReason::NoReceiveQueues);
    assert_eq!(found(&[]), none);
    // One receive queue, with any number of transmit queues.
    assert_eq!(found(&[("a", "rx-0"), ("a", "tx-0"), ("a", "tx-1")]), none);
    let two = [("a", "rx-0"), ("a", "rx-1"), ("b", "rx-0")];
    assert_eq!(found(&two), Look::Fine(Finding::QueuesFit));
    let three = [("a", "rx-0"), ("b", "rx-0"), ("b", "rx-1"), ("b", "rx-2")];
    let devices = vec![Queues {
        device: "b".into(),
        queues: 3,
    }];
    let wrong = Look::Wrong(
        Finding::TooManyQueues { devices },
        Wanted::QueuesAtMost { most: 2 },
    );
    assert_eq!(found(&three), wrong);
    // A single queue is acceptable even if no housekeeping CPU is left.
    let fake = FakeMachine::of(&[(queue("a", "rx-0").as_str(), "")]);
    assert_eq!(nic_queues(&fake.machine, &goal("0", "")), none);
}

#[test]
fn the_watchdog_keeps_the_cpus_that_are_not_isolated() {
    let mask = "/proc/sys/kernel/watchdog_cpumask";
    let want = |files: &[(&str, &str)], now: &str| ask(watchdog_cpus, files, mask, now);
    assert_eq!(want(&[], "0-3").as_deref(), Some("0-1"));
    assert_eq!(want(&[], "1,3").as_deref(), Some("1"));
    assert_eq!(want(&[], "2-3").as_deref(), Some("0-1"));
    assert_eq!(want(&[], "0"), None);
    for name in [
        "/proc/sys/kernel/watchdog",
        "/proc/sys/kernel/soft_watchdog",
    ] {
        assert_eq!(
            want(&[(name, "0\n")], "0-3"),
            None,
            "switched off it disturbs nobody"
        );
        assert!(want(&[(name, "1\n")], "0-3").is_some());
    }
}

#[test]
fn whoever_holds_performance_events_is_named_but_for_ourselves() {
    let open = |pid: &str, target: &str| {
        let fake = FakeMachine::of(&[(&format!("/proc/{pid}/comm"), "perf\n")]);
        let folder = fake.machine.path(format!("/proc/{pid}/fd"));
        std::fs::create_dir_all(&folder).unwrap();
        symlink(target, folder.join("3")).unwrap();
        perf_users(&fake.machine, &goal("2-3", "0-1"))
    };
    let event = "anon_inode:[perf_event]";
    let programs = vec![program("perf", 77)];
    let wrong = Look::Wrong(Finding::PerfEvents { programs }, Wanted::NoPerfEvents);
    assert_eq!(open("77", event), wrong);
    let fine = Look::Fine(Finding::NoPerfEvents);
    assert_eq!(open("77", "/dev/null"), fine);
    assert_eq!(open(&std::process::id().to_string(), event), fine);
    // A process that has ended has no folder; one whose folder cannot be listed may hold events.
    assert_eq!(look(perf_users, &[("/proc/77/comm", "perf\n")]), fine);
    let closed = look(
        perf_users,
        &[("/proc/77/comm", "perf\n"), ("/proc/77/fd", "no folder")],
    );
    assert_eq!(closed, Look::Denied(KnobReason::OtherUsersFiles));
}

#[test]
fn the_frequency_driver_is_named() {
    let driver = (
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver",
        "acpi-cpufreq\n",
    );
    let named = KnobReason::FrequencyDriver {
        driver: "acpi-cpufreq".into(),
    };
    assert_eq!(reason(look(frequency_driver, &[driver])), named);
    assert_eq!(
        look(frequency_driver, &[]),
        Look::Unavailable(KnobReason::NoFrequencyDriver)
    );
}

#[test]
fn an_idle_state_may_stay_up_to_two_microseconds() {
    let path = "/sys/devices/system/cpu/cpu2/cpuidle/state2/disable";
    let want = |latency: &str, now: &str| {
        let file = "/sys/devices/system/cpu/cpu2/cpuidle/state2/latency";
        ask(deep_idle_states, &[(file, latency)], path, now)
    };
    assert_eq!(want("2\n", "0"), None);
    assert_eq!(want("3\n", "0").as_deref(), Some("1"));
    assert_eq!(want("3\n", "1"), None);
    assert_eq!(want("deep\n", "0"), None);
    assert_eq!(ask(deep_idle_states, &[], path, "0"), None);
}

#[test]
fn swappiness_matters_above_ten_and_where_there_is_swap() {
    let want = |swaps: &str, now: &str| {
        ask(
            swappiness,
            &[("/proc/swaps", swaps)],
            "/proc/sys/vm/swappiness",
            now,
        )
    };
    let (empty, one) = ("Filename Type\n", "Filename Type\n/dev/sda2 partition\n");
    assert_eq!(want(one, "11").as_deref(), Some("1"));
    assert_eq!(want(one, "10"), None);
    assert_eq!(want(empty, "60"), None);
    assert_eq!(want(one, "many"), None);
}

#[test]
fn tools_that_read_msrs_are_named_in_order() {
    let none = Look::Fine(Finding::NoneRuns);
    assert_eq!(look(msr_pollers, &[("/proc/5/comm", "bash\n")]), none);
    let both = [
        ("/proc/9/comm", "turbostat\n"),
        ("/proc/10/comm", "pcm-memory\n"),
    ];
    let programs = vec![program("pcm-memory", 10), program("turbostat", 9)];
    assert_eq!(
        look(msr_pollers, &both),
        Look::Wrong(Finding::Running { programs }, Wanted::NoneRuns)
    );
}

#[test]
fn the_processors_flags_say_what_it_can_and_where_it_is() {
    let info = |flags: &'static str| ("/proc/cpuinfo", flags);
    let (plain, guest) = (
        info("x : y\nflags : fpu cat_l3\n"),
        info("Features : fp hypervisor\n"),
    );
    let possible = KnobReason::CacheAllocationPossible;
    assert_eq!(reason(look(cache_allocation, &[plain])), possible);
    assert_eq!(
        reason(look(cache_allocation, &[info("flags : cat_l2\n")])),
        possible
    );
    for none in [&[guest][..], &[]] {
        assert_eq!(
            look(cache_allocation, none),
            Look::Unavailable(KnobReason::NoCacheAllocation)
        );
    }
    let mounted = ("/sys/fs/resctrl/schemata", "");
    assert_eq!(
        reason(look(cache_allocation, &[mounted])),
        KnobReason::ResctrlMounted
    );
    assert_eq!(
        look(system_management, &[guest]),
        Look::Unavailable(KnobReason::FirmwareBelowHost)
    );
    assert_eq!(
        reason(look(system_management, &[plain])),
        KnobReason::FirmwareHidden
    );
    assert_eq!(
        reason(look(system_management, &[])),
        KnobReason::FirmwareHidden
    );
    assert_eq!(reason(look(host, &[guest])), KnobReason::HostHidden);
    assert_eq!(reason(look(host, &[plain])), KnobReason::NoVirtualMachine);
    assert_eq!(
        look(host, &[]),
        Look::Unavailable(KnobReason::ProcessorUnknown)
    );
    // Only the flags line counts.
    let only_in_its_name = info("model : hypervisor\nflags : fpu\n");
    assert_eq!(
        reason(look(host, &[only_in_its_name])),
        KnobReason::NoVirtualMachine
    );
}

#[test]
fn guests_are_disturbed_by_their_hosts_clock() {
    let (guest, file) = (
        ("/proc/5/comm", "qemu-system-x86\n"),
        "/sys/module/kvm/parameters/kvmclock_periodic_sync",
    );
    assert_eq!(
        reason(look(kvm_host, &[(file, "Y\n")])),
        KnobReason::NoGuests
    );
    assert_eq!(
        look(kvm_host, &[guest]),
        Look::Unavailable(KnobReason::KvmUnreadable)
    );
    let sync = |value: &str| Finding::KvmClockSync {
        value: value.into(),
    };
    assert_eq!(
        look(kvm_host, &[guest, (file, "Y\n")]),
        Look::Wrong(sync("Y"), Wanted::Value { value: "N" })
    );
    assert_eq!(
        look(kvm_host, &[guest, (file, "N\n")]),
        Look::Fine(sync("N"))
    );
}

#[test]
fn a_disk_that_rotates_keeps_its_scheduler_and_so_does_one_without_none() {
    let path = "/sys/block/sda/queue/scheduler";
    let want = |rotates: &str, now: &str| {
        let file = ("/sys/block/sda/queue/rotational", rotates);
        ask(io_scheduler, &[file], path, now)
    };
    assert_eq!(want("0\n", "[mq-deadline] none").as_deref(), Some("none"));
    assert_eq!(want("1\n", "[mq-deadline] none"), None);
    assert_eq!(want("0\n", "mq-deadline [none]"), None);
    assert_eq!(want("0\n", "[bfq] mq-deadline"), None);
}

#[test]
fn a_governor_is_wanted_where_the_driver_has_it() {
    let folder = "/sys/devices/system/cpu/cpu2/cpufreq";
    let (path, offers) = (
        format!("{folder}/scaling_governor"),
        format!("{folder}/scaling_available_governors"),
    );
    let want =
        |governors: &str, now: &str| ask(performance_governor, &[(&offers, governors)], &path, now);
    let both = "performance powersave\n";
    assert_eq!(want(both, "powersave").as_deref(), Some("performance"));
    assert_eq!(want(both, "performance"), None);
    assert_eq!(want("schedutil powersave\n", "powersave"), None);
    // Not every driver lists them.
    let unlisted = ask(performance_governor, &[], &path, "powersave");
    assert_eq!(unlisted.as_deref(), Some("performance"));
}

#[test]
fn only_the_level_of_the_console_changes() {
    let want = |now: &str| ask(console_level, &[], "/proc/sys/kernel/printk", now);
    assert_eq!(want("7\t4\t1\t7").as_deref(), Some("4\t4\t1\t7"));
    assert_eq!(want("4\t4\t1\t7"), None);
    assert_eq!(want("loud\t4\t1\t7"), None);
}

#[test]
fn threads_of_deferred_work_are_wrong_above_the_lowest_priority() {
    let stat = |comm: &str, priority: u32| {
        format!(
            "9 ({comm}) S 2 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 2 {priority} 1\n"
        )
    };
    let found = |comm: &str, priority| {
        let stat = stat(comm, priority);
        let files = [("/proc/9/comm", comm), ("/proc/9/stat", stat.as_str())];
        look(softirq_priority, &files)
    };
    assert_eq!(found("ksoftirqd/2", 0), Look::Fine(Finding::NoRealTime));
    assert_eq!(found("ktimers/3", 1), Look::Fine(Finding::NoRealTime));
    let threads = vec![program("rcuc/2", 9)];
    assert_eq!(
        found("rcuc/2", 11),
        Look::Wrong(Finding::RealTime { threads }, Wanted::NoRealTime)
    );
    // Those of other CPUs may do what they like, and migration/N is the scheduler's.
    for comm in ["ksoftirqd/0", "migration/2"] {
        let hidden = Look::Unavailable(KnobReason::KernelThreadsHidden);
        assert_eq!(found(comm, 50), hidden, "{comm}");
    }
}
