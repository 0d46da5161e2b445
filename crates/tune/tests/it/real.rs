//! The knobs of this machine: applied, checked, rolled back, with everything as before. Needs root; without it the
//! tests say so and pass. Among user threads only our own are moved, so that other users of the machine are not
//! disturbed.

use crate::support;

use jitterscope_model::CpuSet;
use jitterscope_platform::Machine;
use jitterscope_tune::{
    Goal, HostWriter, Mechanism, NowIs, OnDrift, OnRefusal, Op, Outcome, Refusal, Select, StateDir,
    ThreadFamily, apply, catalogue, glob, is_clean, online_cpus, plan, rollback, status,
};
use std::collections::BTreeMap;
use std::process::{Child, Command};
use support::{folder, who};

/// The machine's network devices and its CPU hotplug stay unchanged.
const NOT_HERE: &[&str] = &["napi-thread", "cpu-blink"];

/// The files that the tests may change.
const FILES: &[&str] = &[
    "/proc/irq/*/smp_affinity_list",
    "/proc/irq/default_smp_affinity",
    "/proc/sys/kernel/*",
    "/proc/sys/vm/*",
    "/proc/sys/net/core/*",
    "/sys/kernel/rcu_normal",
    "/sys/kernel/mm/ksm/run",
    "/sys/kernel/mm/transparent_hugepage/*",
    "/sys/devices/virtual/workqueue/cpumask",
    "/sys/devices/virtual/workqueue/*/cpumask",
    "/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us",
    "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable",
    "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    "/sys/module/pcie_aspm/parameters/policy",
    "/sys/block/*/queue/rq_affinity",
    "/sys/class/net/*/threaded",
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

fn restless(path: &str) -> bool {
    RESTLESS.iter().any(|p| glob::matches(p, path))
}

/// The part of the machine that the tests may change: files, kernel threads' CPUs, cpusets.
fn snapshot(machine: &Machine) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    for pattern in FILES {
        for path in glob::files(machine, pattern)
            .into_iter()
            .filter(|p| !restless(p))
        {
            if let Ok(text) = machine.read(&path) {
                out.insert(path, text);
            }
        }
    }
    for path in glob::files(machine, "/proc/*/status") {
        let Ok(text) = machine.read(&path) else {
            continue;
        };
        let of = |key: &str| {
            text.lines()
                .find(|l| l.starts_with(key))
                .unwrap_or_default()
                .to_owned()
        };
        // Workers start and end at any time.
        if of("Kthread:").ends_with('1') && !of("Name:").contains("kworker") {
            out.insert(format!("{path} {}", of("Name:")), of("Cpus_allowed_list:"));
        }
    }
    out.insert(
        "cpusets".into(),
        machine.list("/sys/fs/cgroup/cpuset").join(" "),
    );
    out
}

/// The differences in what both have: threads and devices may come and go.
fn changed(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    before
        .iter()
        .filter_map(|(k, v)| {
            after
                .get(k)
                .filter(|now| *now != v)
                .map(|now| format!("{k}: {v:?} -> {now:?}"))
        })
        .collect()
}

/// The machine with a goal, and a rollback that always happens.
struct Bench {
    machine: Machine,
    goal: Goal,
    state: StateDir,
    _dir: tempfile::TempDir,
}

impl Bench {
    /// `None`, with a message, if this machine cannot do it.
    fn new() -> Option<Bench> {
        let machine = Machine::host();
        let uid = machine.read("/proc/self/status").unwrap();
        if !uid.lines().any(|l| l.starts_with("Uid:\t0\t")) {
            jitterscope_testing::skip("changing the machine needs root");
            return None;
        }
        let online = online_cpus(&machine).unwrap();
        let Some(last) = online.last().filter(|_| online.len() > 1) else {
            jitterscope_testing::skip("isolating a CPU needs a second one");
            return None;
        };
        let goal = Goal::to_apply(&machine, [last].into_iter().collect()).unwrap();
        let dir = folder();
        Some(Bench {
            machine,
            goal,
            state: StateDir::at(&dir.path().join("state")),
            _dir: dir,
        })
    }

    fn roll_back(&self) -> jitterscope_tune::RollbackReport {
        rollback(
            &mut HostWriter::new(&self.machine),
            &self.state,
            &mut |_| OnDrift::Restore,
        )
        .unwrap()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = rollback(
            &mut HostWriter::new(&self.machine),
            &self.state,
            &mut |_| OnDrift::Restore,
        );
    }
}

#[test]
fn every_knob_of_this_machine_goes_on_and_comes_off_without_a_trace() {
    let _turn = jitterscope_testing::turn();
    let Some(bench) = Bench::new() else { return };
    let before = snapshot(&bench.machine);
    let mut turned = Vec::new();
    for knob in catalogue::all() {
        if NOT_HERE.contains(&knob.id)
            || matches!(knob.mechanism, Mechanism::Threads(ThreadFamily::User))
        {
            continue;
        }
        let select = Select::Only(vec![knob.id.to_owned()]);
        let plan = plan(&bench.machine, &bench.goal, &select, &[], false).unwrap();
        if plan.changes.is_empty() {
            continue;
        }
        let mut hands = HostWriter::new(&bench.machine);
        let report = apply(&mut hands, &bench.state, &plan, who(), OnRefusal::GoOn).unwrap();
        for failure in report.failures() {
            // The kernel may manage an interrupt, and firmware the PCIe links; no other failure is accepted.
            let excused = match &failure.outcome {
                Outcome::Refused { class, .. } => *class == Refusal::Managed || knob.id == "aspm",
                _ => false,
            };
            assert!(excused, "{}: {failure:?}", knob.id);
        }
        let now = status(&bench.machine, &bench.state).unwrap();
        assert_eq!(now.drifted().count(), 0, "{}: {now:?}", knob.id);
        let rolled = bench.roll_back();
        assert_eq!(rolled.unsettled().count(), 0, "{}: {rolled:?}", knob.id);
        assert_eq!(
            changed(&before, &snapshot(&bench.machine)),
            Vec::<String>::new(),
            "after {}",
            knob.id
        );
        assert!(is_clean(&bench.state).unwrap());
        turned.push(knob.id);
    }
    eprintln!("turned and turned back: {}", turned.join(", "));
    assert!(turned.contains(&"vmstat"), "only {turned:?}");
}

/// A spinning child that ends with the test.
struct Spinner(Child);

impl Spinner {
    fn start() -> Spinner {
        Spinner(
            Command::new("sh")
                .args(["-c", "while :; do :; done"])
                .spawn()
                .unwrap(),
        )
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap()
    }

    fn allowed(&self, machine: &Machine) -> CpuSet {
        let status = machine
            .read(format!("/proc/{}/status", self.pid()))
            .unwrap();
        let line = status
            .lines()
            .find_map(|l| l.strip_prefix("Cpus_allowed_list:"))
            .unwrap();
        line.trim().parse().unwrap()
    }

    /// The CPU that it last ran on (field 39 of stat).
    fn on(&self, machine: &Machine) -> u32 {
        let stat = machine.read(format!("/proc/{}/stat", self.pid())).unwrap();
        stat[stat.rfind(')').unwrap() + 1..]
            .split_whitespace()
            .nth(36)
            .unwrap()
            .parse()
            .unwrap()
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn isolation_moves_a_competitor_off_the_cpu_and_gives_it_back() {
    let _turn = jitterscope_testing::turn();
    let Some(bench) = Bench::new() else { return };
    let before = snapshot(&bench.machine);
    let isolated = bench.goal.isolated.first().unwrap().0;
    let spinners = [Spinner::start(), Spinner::start(), Spinner::start()];
    let gone = Spinner::start();
    let ours: Vec<i32> = spinners.iter().chain([&gone]).map(Spinner::pid).collect();
    let original = spinners[0].allowed(&bench.machine);
    assert!(original.contains(jitterscope_model::CpuId(isolated)));

    let select = Select::Profile(jitterscope_tune::Profile::Isolation);
    let mut plan = plan(&bench.machine, &bench.goal, &select, &[], false).unwrap();
    plan.changes.retain(|c| {
        c.knob != "systemd-aff" || matches!(c.op, Op::Thread { pid, .. } if ours.contains(&pid))
    });
    assert!(
        plan.changes
            .iter()
            .filter(|c| c.knob == "systemd-aff")
            .count()
            >= 4
    );
    apply(
        &mut HostWriter::new(&bench.machine),
        &bench.state,
        &plan,
        who(),
        OnRefusal::GoOn,
    )
    .unwrap();
    drop(gone);
    for _ in 0..20 {
        for spinner in &spinners {
            assert_ne!(spinner.on(&bench.machine), isolated);
            assert!(
                spinner
                    .allowed(&bench.machine)
                    .intersection(&bench.goal.isolated)
                    .is_empty()
            );
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let now = status(&bench.machine, &bench.state).unwrap();
    assert!(
        now.changes
            .iter()
            .any(|c| matches!(c.standing, NowIs::Gone { .. })),
        "the ended spinner"
    );

    let report = bench.roll_back();
    assert_eq!(report.unsettled().count(), 0, "{report:?}");
    for spinner in &spinners {
        assert_eq!(spinner.allowed(&bench.machine), original);
    }
    assert_eq!(
        changed(&before, &snapshot(&bench.machine)),
        Vec::<String>::new()
    );
}
