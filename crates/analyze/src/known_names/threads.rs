//! Kernel threads and daemons, and what they do.

use super::Table;

/// The beginning of the names of idle tasks. A user's thread may imitate it.
pub(super) const IDLE: (&str, &str) = ("swapper/", "the idle task");

/// The beginning of the names of kernel workers: reports name what they run instead.
pub(super) const WORKER: &str = "kworker/";

/// Beginnings of the names of this program's threads.
pub(super) const OURS: [&str; 2] = ["js-spin/", "jitterscope"];

/// Kernel threads, by their whole name.
pub(super) const WHOLE: Table = &[
    ("rcu_preempt", "drives RCU grace periods"),
    ("rcu_sched", "drives RCU grace periods"),
    (
        "khugepaged",
        "collapses memory into huge pages (transparent_hugepage)",
    ),
    ("ksmd", "merges identical memory pages (ksm/run)"),
    ("kthreadd", "starts kernel threads"),
    ("oom_reaper", "takes back memory of killed processes"),
    (
        "khungtaskd",
        "looks for hung tasks (kernel.hung_task_timeout_secs)",
    ),
    ("kauditd", "delivers audit records"),
    ("kdevtmpfs", "makes device nodes"),
    ("psimon", "polls pressure-stall triggers"),
];

/// Kernel threads, by the beginning of their name; longer ones first. This program's threads are included: they reveal
/// nothing about the user.
pub(super) const PREFIXES: Table = &[
    (
        OURS[0],
        "named like a measuring thread of jitterscope: another recording?",
    ),
    (
        OURS[1],
        "named like jitterscope: another one of its processes?",
    ),
    (
        "ksoftirqd/",
        "runs softirqs that were too many for interrupt exit",
    ),
    ("ktimers/", "runs timer softirqs (PREEMPT_RT)"),
    ("irq_work/", "runs deferred irq work (PREEMPT_RT)"),
    (
        "migration/",
        "CPU stopper: moves threads between CPUs, serves the soft lockup watchdog",
    ),
    ("cpuhp/", "CPU hotplug"),
    ("idle_inject/", "forces idle time to cool the CPU"),
    ("irq/", "a threaded interrupt handler"),
    ("rcuc/", "per-CPU RCU work"),
    ("rcub/", "boosts RCU readers"),
    (
        "rcuog/",
        "drives RCU callbacks offloaded from CPUs (rcu_nocbs)",
    ),
    (
        "rcuop/",
        "runs RCU callbacks offloaded from a CPU (rcu_nocbs)",
    ),
    (
        "rcuos/",
        "runs RCU callbacks offloaded from a CPU (rcu_nocbs)",
    ),
    ("rcu_exp", "drives expedited RCU grace periods"),
    ("rcu_tasks", "drives RCU-tasks grace periods (tracing, BPF)"),
    ("kswapd", "takes memory back when it runs short"),
    ("kcompactd", "compacts memory (vm.compaction_proactiveness)"),
    ("jbd2/", "the ext4 journal"),
    ("xfsaild/", "writes XFS metadata"),
    ("btrfs-", "btrfs worker"),
    ("sugov:", "schedutil sets the CPU frequency"),
    ("napi/", "threaded network polling"),
    ("vhost-", "virtual device of a guest"),
    ("kvm", "virtual machine support"),
    ("scsi_eh_", "SCSI error handling"),
    IDLE,
    ("watchdog/", "soft lockup watchdog of older kernels"),
];

/// Common daemons, by their whole name.
pub(super) const DAEMONS: Table = &[
    ("systemd-journal", "the system's log"),
    ("irqbalance", "spreads interrupts over CPUs"),
    ("tuned", "tuning daemon"),
];
