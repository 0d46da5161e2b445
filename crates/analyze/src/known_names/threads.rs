//! Threads.

/// How the names of idle tasks begin, and that of whoever calls himself so.
pub(super) const IDLE: &str = "swapper/";

/// Threads of the kernel, by their whole name.
pub(super) const WHOLE: &[&str] = &[
    "rcu_preempt",
    "rcu_sched",
    "khugepaged",
    "ksmd",
    "kthreadd",
    "oom_reaper",
    "khungtaskd",
    "kauditd",
    "kdevtmpfs",
    "psimon",
];

/// Threads of the kernel, by how their names begin; more special ones first. Those of this program are among
/// them, for they say nothing about who uses the machine.
pub(super) const PREFIXES: &[&str] = &[
    "js-spin/",
    "jitterscope",
    "ksoftirqd/",
    "ktimers/",
    "irq_work/",
    "migration/",
    "cpuhp/",
    "idle_inject/",
    "irq/",
    "rcuc/",
    "rcub/",
    "rcuog/",
    "rcuop/",
    "rcuos/",
    "rcu_exp",
    "rcu_tasks",
    "kswapd",
    "kcompactd",
    "jbd2/",
    "xfsaild/",
    "btrfs-",
    "sugov:",
    "napi/",
    "vhost-",
    "kvm",
    "scsi_eh_",
    IDLE,
    "watchdog/",
];

/// Daemons that most machines have, by their whole name.
pub(super) const DAEMONS: &[&str] = &["systemd-journal", "irqbalance", "tuned"];
