//! A fake machine with every knob of the catalogue in the wrong state, and hands that can refuse, or die, at any step.
#![allow(dead_code, reason = "each test file uses a part of it")]

use jitterscope_model::CpuSet;
use jitterscope_platform::Machine;
use jitterscope_tune::glob;
use jitterscope_tune::{Access, Goal, HostWriter, MachineWriter, Who};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

/// The cpuset version of the fake machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cgroups {
    V1,
    V2,
}

/// (file, text) of a machine with 4 CPUs.
const FILES: &[(&str, &str)] = &[
    ("proc/cmdline", "quiet psi=1\n"),
    ("proc/cpuinfo", "processor : 0\nflags : fpu cat_l3\n"),
    ("proc/pressure/cpu", ""),
    (
        "proc/swaps",
        "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n",
    ),
    (
        "proc/sys/kernel/random/boot_id",
        "11111111-1111-1111-1111-111111111111\n",
    ),
    ("proc/sys/kernel/watchdog", "1\n"),
    ("proc/sys/kernel/watchdog_cpumask", "0-3\n"),
    ("proc/sys/kernel/nmi_watchdog", "1\n"),
    ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
    ("proc/sys/kernel/numa_balancing", "1\n"),
    ("proc/sys/kernel/timer_migration", "1\n"),
    ("proc/sys/kernel/split_lock_mitigate", "1\n"),
    ("proc/sys/vm/stat_interval", "1\n"),
    ("proc/sys/vm/swappiness", "60\n"),
    ("proc/sys/vm/dirty_background_ratio", "10\n"),
    ("proc/sys/vm/dirty_ratio", "20\n"),
    ("proc/sys/vm/compaction_proactiveness", "20\n"),
    ("proc/sys/vm/compact_unevictable_allowed", "1\n"),
    ("proc/sys/net/core/rps_default_mask", "f\n"),
    ("proc/sys/net/core/busy_read", "0\n"),
    ("proc/sys/net/core/busy_poll", "0\n"),
    ("proc/sys/kernel/printk", "7\t4\t1\t7\n"),
    ("proc/irq/default_smp_affinity", "f\n"),
    ("proc/irq/24/smp_affinity_list", "0-3\n"),
    ("proc/irq/24/effective_affinity_list", "2\n"),
    ("proc/irq/25/smp_affinity_list", "0,3\n"),
    ("proc/irq/25/effective_affinity_list", "0\n"),
    ("proc/irq/26/smp_affinity_list", "0-1\n"),
    ("proc/irq/26/effective_affinity_list", "1\n"),
    ("sys/devices/system/cpu/online", "0-3\n"),
    ("sys/devices/system/cpu/isolated", "\n"),
    ("sys/devices/system/cpu/nohz_full", "\n"),
    ("sys/devices/system/cpu/smt/control", "on\n"),
    ("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n"),
    (
        "sys/devices/system/cpu/intel_uncore_frequency/package_00_die_00/min_freq_khz",
        "800000\n",
    ),
    (
        "sys/devices/system/cpu/intel_uncore_frequency/package_00_die_00/max_freq_khz",
        "2400000\n",
    ),
    ("sys/kernel/rcu_normal", "0\n"),
    ("sys/kernel/mm/ksm/run", "1\n"),
    (
        "sys/kernel/mm/transparent_hugepage/enabled",
        "[always] madvise never\n",
    ),
    (
        "sys/kernel/mm/transparent_hugepage/defrag",
        "always [defer] defer+madvise madvise never\n",
    ),
    (
        "sys/module/rcutree/parameters/nohz_full_patience_delay",
        "0\n",
    ),
    ("sys/module/rcutree/parameters/kthread_prio", "2\n"),
    ("sys/module/workqueue/parameters/power_efficient", "N\n"),
    ("sys/module/kfence/parameters/sample_interval", "100\n"),
    (
        "sys/module/edac_core/parameters/edac_mc_poll_msec",
        "1000\n",
    ),
    (
        "sys/module/pcie_aspm/parameters/policy",
        "[default] performance powersave powersupersave \n",
    ),
    ("sys/devices/virtual/workqueue/cpumask", "f\n"),
    ("sys/devices/virtual/workqueue/writeback/cpumask", "f\n"),
    ("sys/class/net/eth0/threaded", "0\n"),
    ("sys/class/net/eth0/napi_defer_hard_irqs", "0\n"),
    ("sys/class/net/eth0/gro_flush_timeout", "0\n"),
    ("sys/class/net/eth0/queues/rx-0/rps_cpus", "c\n"),
    (
        "sys/class/net/eth0/queues/tx-0/xps_cpus",
        "00000000,0000000f\n",
    ),
    ("sys/block/vda/queue/rq_affinity", "1\n"),
    ("sys/block/vda/queue/rotational", "0\n"),
    ("sys/block/vda/queue/scheduler", "[mq-deadline] none\n"),
    (
        "etc/sysctl.d/99-sysctl.conf",
        "# the user's own\nvm.stat_interval = 2\n",
    ),
    ("etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n"),
    ("etc/default/grub.d/50-cloud.cfg", "GRUB_TIMEOUT=0\n"),
    ("etc/systemd/system.conf", "[Manager]\n"),
];

/// (file with {} for the CPU, text).
const PER_CPU: &[(&str, &str)] = &[
    (
        "sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor",
        "powersave\n",
    ),
    (
        "sys/devices/system/cpu/cpu{}/cpufreq/scaling_driver",
        "intel_pstate\n",
    ),
    (
        "sys/devices/system/cpu/cpu{}/cpufreq/scaling_min_freq",
        "800000\n",
    ),
    (
        "sys/devices/system/cpu/cpu{}/cpufreq/scaling_max_freq",
        "3600000\n",
    ),
    (
        "sys/devices/system/cpu/cpu{}/cpufreq/energy_performance_preference",
        "balance_performance\n",
    ),
    ("sys/devices/system/cpu/cpu{}/power/energy_perf_bias", "6\n"),
    (
        "sys/devices/system/cpu/cpu{}/power/pm_qos_resume_latency_us",
        "0\n",
    ),
    ("sys/devices/system/cpu/cpu{}/cpuidle/state0/disable", "0\n"),
    ("sys/devices/system/cpu/cpu{}/cpuidle/state0/latency", "0\n"),
    ("sys/devices/system/cpu/cpu{}/cpuidle/state2/disable", "0\n"),
    (
        "sys/devices/system/cpu/cpu{}/cpuidle/state2/latency",
        "127\n",
    ),
    (
        "sys/devices/system/machinecheck/machinecheck{}/check_interval",
        "12c\n",
    ),
    (
        "sys/devices/system/machinecheck/machinecheck{}/ignore_ce",
        "0\n",
    ),
    (
        "sys/kernel/debug/sched/fair_server/cpu{}/runtime",
        "50000000\n",
    ),
];

/// (pid, parent, name, flags, allowed CPUs).
const THREADS: &[(i32, i32, &str, u64, &str)] = &[
    (1, 0, "systemd", 0x0040_0100, "0-3"),
    (2, 0, "kthreadd", 0x0460_8040, "0-3"),
    (15, 2, "rcu_preempt", 0x0020_8040, "0-3"),
    (16, 2, "migration/2", 0x0420_8040, "2"),
    (17, 2, "kworker/2:1-events", 0x0420_8060, "2"),
    (18, 2, "kworker/3:0-mm_percpu_wq", 0x0420_8060, "3"),
    (40, 2, "kswapd0", 0x0022_0840, "0-3"),
    (300, 1, "a (odd) name", 0x0040_0000, "0-3"),
    (301, 1, "pinned-app", 0x0040_0000, "3"),
    (302, 1, "half", 0x0040_0000, "1-2"),
];

pub fn put(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Adds a process with one thread.
pub fn put_thread(root: &Path, pid: i32, parent: i32, comm: &str, flags: u64, cpus: &str) {
    let stat = format!(
        "{pid} ({comm}) S {parent} 0 0 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 {} 0 0\n",
        1000 + pid
    );
    put(root, &format!("proc/{pid}/stat"), &stat);
    put(root, &format!("proc/{pid}/comm"), &format!("{comm}\n"));
    put(root, &format!("proc/{pid}/task/{pid}/stat"), &stat);
    put(
        root,
        &format!("proc/{pid}/task/{pid}/status"),
        &format!(
            "Name:\t{comm}\nCpus_allowed:\tf\nCpus_allowed_list:\t{cpus}\nvoluntary_ctxt_switches:\t1\n"
        ),
    );
}

/// A temporary folder, in memory if possible: these tests sync a lot.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

pub fn build(root: &Path, cgroups: Cgroups) -> Machine {
    for (file, text) in FILES {
        put(root, file, text);
    }
    for cpu in 0..4 {
        for (file, text) in PER_CPU {
            put(root, &file.replace("{}", &cpu.to_string()), text);
        }
        if cpu > 0 {
            put(
                root,
                &format!("sys/devices/system/cpu/cpu{cpu}/online"),
                "1\n",
            );
        }
    }
    for (pid, parent, comm, flags, cpus) in THREADS {
        put_thread(root, *pid, *parent, comm, *flags, cpus);
    }
    match cgroups {
        Cgroups::V2 => {
            put(
                root,
                "sys/fs/cgroup/cgroup.controllers",
                "cpuset cpu io memory\n",
            );
            put(root, "sys/fs/cgroup/cgroup.subtree_control", "cpu memory\n");
            put(root, "sys/fs/cgroup/cpuset.cpus.isolated", "\n");
            put(root, "sys/fs/cgroup/cgroup.procs", "1\n300\n");
        }
        Cgroups::V1 => {
            let group = "sys/fs/cgroup/cpuset";
            put(
                root,
                "proc/mounts",
                "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n",
            );
            for (dir, cpus) in [
                ("", "0-3"),
                ("/docker", "0-3"),
                ("/docker/a", "1-2"),
                ("/other", "0-1"),
            ] {
                put(
                    root,
                    &format!("{group}{dir}/cpuset.cpus"),
                    &format!("{cpus}\n"),
                );
                put(root, &format!("{group}{dir}/cpuset.mems"), "0\n");
                put(
                    root,
                    &format!("{group}{dir}/cpuset.sched_load_balance"),
                    "1\n",
                );
                put(root, &format!("{group}{dir}/tasks"), "");
            }
        }
    }
    Machine::at(root)
}

/// A goal with CPUs 2 and 3 isolated.
pub fn goal(machine: &Machine) -> Goal {
    Goal::to_apply(machine, "2-3".parse().unwrap()).unwrap()
}

pub fn who() -> Who {
    Who {
        uid: 0,
        name: Some("tester".into()),
        pid: 7,
        command: "test".into(),
        at_realtime_ns: 1,
    }
}

/// The contents of every file, and every folder, below `root`.
pub fn snapshot(root: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut out = BTreeMap::new();
    let mut todo = vec![root.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if path.is_dir() {
                out.insert(name, None);
                todo.push(path);
            } else {
                out.insert(name, Some(fs::read(&path).unwrap()));
            }
        }
    }
    out
}

/// The differences, for a readable assertion.
pub fn differences(
    before: &BTreeMap<String, Option<Vec<u8>>>,
    after: &BTreeMap<String, Option<Vec<u8>>>,
) -> Vec<String> {
    let text = |v: Option<&Option<Vec<u8>>>| match v {
        None => "absent".to_owned(),
        Some(None) => "folder".to_owned(),
        Some(Some(bytes)) => format!("{:?}", String::from_utf8_lossy(bytes)),
    };
    before
        .keys()
        .chain(after.keys().filter(|k| !before.contains_key(*k)))
        .filter(|k| before.get(*k) != after.get(*k))
        .map(|k| format!("{k}: {} -> {}", text(before.get(k)), text(after.get(k))))
        .collect()
}

struct Died;

/// MachineWriter on a fake machine: new cgroups come with their files, and the hands can refuse operations or die before or
/// after any of them.
pub struct FakeHands {
    inner: HostWriter,
    pub moves: usize,
    /// The step to die at; even: before it, odd: after it.
    pub die_at: Option<usize>,
    /// Die by SIGKILL, as from outside, instead of by unwinding.
    pub for_real: bool,
    /// (path pattern, errno) of refused writes.
    pub refuse: Vec<(&'static str, i32)>,
    /// Paths that accept a write but keep their value.
    pub deaf: Vec<&'static str>,
    /// (path, path): the first accepts a write but keeps its value until the second is written, like a thread whose
    /// CPUs a cpuset restricts.
    pub held: Option<(&'static str, &'static str)>,
}

impl FakeHands {
    pub fn new(machine: &Machine) -> FakeHands {
        FakeHands {
            inner: HostWriter::new(machine),
            moves: 0,
            die_at: None,
            for_real: false,
            refuse: vec![],
            deaf: vec![],
            held: None,
        }
    }

    pub fn dying_at(machine: &Machine, at: usize) -> FakeHands {
        FakeHands {
            die_at: Some(at),
            ..FakeHands::new(machine)
        }
    }

    fn movement<T>(&mut self, act: impl FnOnce(&mut HostWriter) -> io::Result<T>) -> io::Result<T> {
        let before = self.moves * 2;
        self.moves += 1;
        if self.die_at == Some(before) {
            self.die();
        }
        let result = act(&mut self.inner);
        if self.die_at == Some(before + 1) {
            self.die();
        }
        result
    }

    fn die(&self) -> ! {
        if self.for_real {
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
        }
        resume_unwind(Box::new(Died));
    }
}

/// Runs `act`; returns `None` if the hands died in it.
pub fn survive<T>(act: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(value) => Some(value),
        Err(payload) if payload.is::<Died>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

impl MachineWriter for FakeHands {
    fn machine(&self) -> &Machine {
        self.inner.machine()
    }

    fn write(&mut self, path: &str, value: &str) -> io::Result<()> {
        if let Some((_, errno)) = self.refuse.iter().find(|(p, _)| glob::matches(p, path)) {
            return Err(io::Error::from_raw_os_error(*errno));
        }
        self.held.take_if(|(_, by)| *by == path);
        let held = self.held.is_some_and(|(held, _)| held == path);
        let deaf = held || self.deaf.iter().any(|p| glob::matches(p, path));
        self.movement(|hands| {
            if deaf {
                return Ok(());
            }
            let machine = hands.machine().clone();
            if path.ends_with("cgroup.subtree_control") {
                let now = machine.read(path).unwrap();
                let mut names: Vec<&str> = now.split_whitespace().collect();
                match (value.strip_prefix('+'), value.strip_prefix('-')) {
                    (Some(name), _) => names.insert(0, name),
                    (_, Some(name)) => names.retain(|n| *n != name),
                    _ => return Err(io::Error::from_raw_os_error(22)),
                }
                return hands.write(path, &(names.join(" ") + "\n"));
            }
            if path.ends_with("/tasks") || path.ends_with("/cgroup.procs") {
                let now = machine.read(path).unwrap();
                return hands.write(path, &format!("{now}{value}\n"));
            }
            if path.ends_with("cpuset.cpus.partition") {
                hands.write(
                    "/sys/fs/cgroup/cpuset.cpus.isolated",
                    if value.starts_with("isolated") {
                        "2-3\n"
                    } else {
                        "\n"
                    },
                )?;
            }
            hands.write(path, value)
        })
    }

    fn make_dir(&mut self, path: &str) -> io::Result<()> {
        self.movement(|hands| {
            hands.make_dir(path)?;
            let root = hands.machine().path(path);
            if path.starts_with("/sys/fs/cgroup/cpuset/") {
                put(&root, "cpuset.cpus", "\n");
                put(&root, "cpuset.mems", "\n");
                put(&root, "cpuset.sched_load_balance", "1\n");
                put(&root, "tasks", "");
            } else if path.starts_with("/sys/fs/cgroup/") {
                put(&root, "cpuset.cpus", "\n");
                put(&root, "cpuset.cpus.partition", "member\n");
                put(&root, "cgroup.procs", "");
            }
            Ok(())
        })
    }

    fn remove_dir(&mut self, path: &str) -> io::Result<()> {
        self.movement(|hands| {
            let root = hands.machine().path(path);
            if path.starts_with("/sys/fs/cgroup/") {
                fs::remove_dir_all(root)
            } else {
                hands.remove_dir(path)
            }
        })
    }

    fn put_file(&mut self, path: &str, content: &str, access: Option<Access>) -> io::Result<()> {
        self.movement(|hands| hands.put_file(path, content, access))
    }

    fn remove_file(&mut self, path: &str) -> io::Result<()> {
        self.movement(|hands| hands.remove_file(path))
    }

    fn set_affinity(&mut self, pid: i32, tid: i32, cpus: &CpuSet) -> io::Result<()> {
        self.movement(|hands| hands.set_affinity(pid, tid, cpus))
    }
}
