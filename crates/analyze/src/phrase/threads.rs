//! Threads, by name.

use super::Table;
use jitterscope_model::{SchedClass, Task};

/// What the idle task is.
const IDLE: &str = "the idle task";
/// How its name begins, and that of whoever calls himself so.
const IDLE_NAMES: &str = "swapper/";
/// Of the names below those of programs.
const DAEMONS: [&str; 3] = ["systemd-journal", "irqbalance", "tuned"];

/// What a thread is: the idle task by its id, the kernel's threads by their flags where those were read.
pub(super) fn of(task: &Task) -> Option<&'static str> {
    if task.tid == Some(0) || task.class == Some(SchedClass::Idle) {
        return Some(IDLE);
    }
    if task.comm.starts_with(IDLE_NAMES) {
        return None;
    }
    if task.is_of_user() {
        return super::find(WHOLE, &task.comm).filter(|_| DAEMONS.contains(&&*task.comm));
    }
    find(&task.comm)
}

/// What a thread of this name is.
fn find(name: &str) -> Option<&'static str> {
    super::find(WHOLE, name)
        .or_else(|| PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, phrase)| *phrase))
}

/// Whether the name says nothing about who uses the machine.
pub(super) fn is_common(name: &str) -> bool {
    let numbered =
        |rest: &str| rest.len() <= 8 && rest.bytes().all(|b| b.is_ascii_digit() || b":uHI-".contains(&b));
    super::find(WHOLE, name).is_some()
        || name.strip_prefix("kworker/").is_some_and(numbered)
        || PREFIXES.iter().any(|(prefix, _)| name.strip_prefix(prefix).is_some_and(numbered))
}

/// By their whole name.
pub(super) const WHOLE: Table = &[
    ("rcu_preempt", "drives RCU grace periods"),
    ("rcu_sched", "drives RCU grace periods"),
    ("khugepaged", "collapses memory into huge pages (transparent_hugepage)"),
    ("ksmd", "merges identical memory pages (ksm/run)"),
    ("kthreadd", "starts kernel threads"),
    ("oom_reaper", "takes back memory of killed processes"),
    ("khungtaskd", "looks for hung tasks (kernel.hung_task_timeout_secs)"),
    ("kauditd", "delivers audit records"),
    ("kdevtmpfs", "makes device nodes"),
    ("psimon", "polls pressure-stall triggers"),
    ("systemd-journal", "the system's log"),
    ("irqbalance", "spreads interrupts over CPUs"),
    ("tuned", "tuning daemon"),
];

/// By how their names begin; more special ones first.
pub(super) const PREFIXES: Table = &[
    ("js-spin/", "named like a measuring thread of jitterscope: another recording?"),
    ("jitterscope", "named like jitterscope: another one of its processes?"),
    ("ksoftirqd/", "runs softirqs that were too many for interrupt exit"),
    ("ktimers/", "runs timer softirqs (PREEMPT_RT)"),
    ("irq_work/", "runs deferred irq work (PREEMPT_RT)"),
    ("migration/", "CPU stopper: moves threads between CPUs, serves the soft lockup watchdog"),
    ("cpuhp/", "CPU hotplug"),
    ("idle_inject/", "forces idle time to cool the CPU"),
    ("irq/", "a threaded interrupt handler"),
    ("rcuc/", "per-CPU RCU work"),
    ("rcub/", "boosts RCU readers"),
    ("rcuog/", "drives RCU callbacks offloaded from CPUs (rcu_nocbs)"),
    ("rcuop/", "runs RCU callbacks offloaded from a CPU (rcu_nocbs)"),
    ("rcuos/", "runs RCU callbacks offloaded from a CPU (rcu_nocbs)"),
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
    (IDLE_NAMES, IDLE),
    ("watchdog/", "soft lockup watchdog of older kernels"),
];
