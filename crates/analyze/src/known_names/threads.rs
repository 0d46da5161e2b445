//! Names of threads.

/// The beginning of the names of idle tasks. A user's thread may imitate it.
pub(super) const IDLE: &str = "swapper/";

/// Kernel threads, by their whole name.
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

/// Kernel threads, by the beginning of their name; longer ones first. This program's threads are included: they reveal
/// nothing about the user.
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

/// Common daemons, by their whole name.
pub(super) const DAEMONS: &[&str] = &["systemd-journal", "irqbalance", "tuned"];
