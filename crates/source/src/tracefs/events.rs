//! Which events are recorded, and what cannot be seen without each.

use super::Tracefs;

/// One tracepoint that we want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Its folder.
    pub(super) system: &'static str,
    /// Its name.
    pub(super) event: &'static str,
    /// What cannot be told without it; empty where a kernel that lacks the event lacks the thing too.
    pub(super) loses: &'static str,
}

const fn want(system: &'static str, event: &'static str, loses: &'static str) -> Wanted {
    Wanted { system, event, loses }
}

/// Recorded on the measured CPUs.
pub(super) const LOCAL: &[Wanted] = &[
    want("sched", "sched_switch", "which thread took the CPU"),
    want("irq", "irq_handler_entry", "device interrupts"),
    want("irq", "irq_handler_exit", "device interrupts"),
    want("irq", "softirq_entry", "softirqs"),
    want("irq", "softirq_exit", "softirqs"),
    want("nmi", "nmi_handler", "NMI handlers"),
    want("workqueue", "workqueue_execute_start", "what kworkers ran"),
    want("workqueue", "workqueue_execute_end", "what kworkers ran"),
    want("timer", "timer_expire_entry", "timer functions"),
    want("timer", "timer_expire_exit", "timer functions"),
    want("timer", "hrtimer_expire_entry", "high-resolution timer functions"),
    want("timer", "hrtimer_expire_exit", "high-resolution timer functions"),
    want("timer", "tick_stop", "what keeps the tick running"),
    want("csd", "csd_function_entry", "what functions other CPUs called here (Linux 6.5)"),
    want("csd", "csd_function_exit", "what functions other CPUs called here (Linux 6.5)"),
    want("exceptions", "page_fault_user", "page faults"),
    want("exceptions", "page_fault_kernel", "page faults"),
    want("tlb", "tlb_flush", "why translations were flushed"),
    want("power", "cpu_frequency", "frequency changes"),
    want("power", "cpu_idle", "idle states"),
    // A kernel without it handles no machine check.
    want("mce", "mce_record", ""),
];

/// The beginning of a thread.
pub(super) const NEW_TASK: Wanted = want("task", "task_newtask", "the beginning of threads");

/// A thread has another name. As [`PRICED`], and for the whole recording.
pub(super) const RENAMED: Wanted = want("task", "task_rename", "threads that come by exec");

/// Recorded beside them where threads are followed.
pub(super) const FOLLOWING: &[(Wanted, Option<EventFilter>)] = &[
    (NEW_TASK, None),
    (
        want("sched", "sched_stat_runtime", "when a thread was put on a CPU whose idle thread is not traced"),
        // A thread that asks for its own CPU time is charged each time; that would flood the buffer.
        Some(EventFilter::AtLeast("runtime", 10_000)),
    ),
];

/// The folder whose every `X_entry` and `X_exit` is recorded on the measured CPUs.
pub(super) const VECTORS: &str = "irq_vectors";
/// What is lost without any of them.
pub(super) const VECTORS_LOSE: &str = "interrupt vectors: the local timer and interrupts between CPUs";

/// What an event of the senders says of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventFilter {
    /// A field that is a CPU number.
    Cpu(&'static str),
    /// Two fields that are CPU numbers, of which either may be meant.
    Either(&'static str, &'static str),
    /// A field that is a set of CPUs.
    Mask(&'static str),
    /// The CPU number of a work item: also "any CPU".
    Work,
    /// No target: a field that must be at least this.
    AtLeast(&'static str, u64),
    /// No target: a field that must lie between these, both included.
    Between(&'static str, u64, u64),
}

/// A thread is moved.
pub(super) const MIGRATE: Wanted = want("sched", "sched_migrate_task", "who was moved to the CPU");
/// Its target where threads are followed on some CPUs only: who leaves one waits there no more.
pub(super) const MIGRATE_EITHER: EventFilter = EventFilter::Either("dest_cpu", "orig_cpu");
/// Recorded on all CPUs beside the senders, where threads are not followed: ids are used again.
pub(super) const NEWBORN: Wanted = want("task", "task_newtask", "that a thread id is used again");
/// Recorded while it is measured what a record costs, and then no more: anybody may rename himself as often as
/// he likes.
pub(super) const PRICED: Wanted = want("task", "task_rename", "");

/// Recorded on all CPUs, filtered by target.
pub(super) const SENDERS: &[(Wanted, EventFilter)] = &[
    (want("ipi", "ipi_send_cpu", "who sent an interrupt to one CPU (Linux 6.4)"), EventFilter::Cpu("cpu")),
    (
        want("ipi", "ipi_send_cpumask", "who sent an interrupt to several CPUs (Linux 6.4)"),
        EventFilter::Mask("cpumask"),
    ),
    (want("csd", "csd_queue_cpu", "who called a function on the CPU (Linux 6.5)"), EventFilter::Cpu("cpu")),
    (want("sched", "sched_waking", "who woke a thread"), EventFilter::Cpu("target_cpu")),
    (want("workqueue", "workqueue_queue_work", "who queued work"), EventFilter::Work),
    (MIGRATE, EventFilter::Cpu("dest_cpu")),
    // SIGSTOP, SIGTSTP, SIGTTIN and SIGTTOU.
    (want("signal", "signal_generate", "who stopped a thread"), EventFilter::Between("sig", 19, 22)),
];

/// The names of `wanted`'s events that a kernel lacks, and what is lost by that. `has` says whether
/// there is a `system/event`.
fn missing<'a>(
    wanted: impl Iterator<Item = &'a Wanted>,
    has: impl Fn(&str) -> bool,
) -> (Vec<String>, Vec<&'static str>) {
    let lacking: Vec<&Wanted> =
        wanted.filter(|w| !w.loses.is_empty() && !has(&format!("{}/{}", w.system, w.event))).collect();
    let mut loses: Vec<&'static str> = lacking.iter().map(|w| w.loses).collect();
    loses.dedup();
    (lacking.iter().map(|w| format!("{}:{}", w.system, w.event)).collect(), loses)
}

impl Tracefs {
    /// Whether the kernel has an event, told as `system/event`.
    #[must_use]
    pub fn has_event(&self, event: &str) -> bool {
        self.machine().exists(format!("{}/events/{event}/format", self.root()))
    }
}

fn has(tracefs: &Tracefs) -> impl Fn(&str) -> bool {
    |event| tracefs.has_event(event)
}

/// Events of the measured CPUs that this kernel lacks, and what is lost by that.
pub(crate) fn missing_local(tracefs: &Tracefs) -> (Vec<String>, Vec<&'static str>) {
    let (mut names, mut loses) = missing(LOCAL.iter(), has(tracefs));
    let vectors = tracefs.machine().list(format!("{}/events/{VECTORS}", tracefs.root()));
    if !vectors.iter().any(|name| name.ends_with("_entry")) {
        names.push(format!("{VECTORS}:*"));
        loses.push(VECTORS_LOSE);
    }
    (names, loses)
}

/// Events of senders that this kernel lacks, and what is lost by that.
pub(crate) fn missing_senders(tracefs: &Tracefs) -> (Vec<String>, Vec<&'static str>) {
    missing(SENDERS.iter().map(|(wanted, _)| wanted), has(tracefs))
}
