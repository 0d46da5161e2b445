//! Which events are recorded, and what cannot be seen without each.

use super::Tracefs;
use jitterscope_model::{EventGrain, SourceLoss};
use std::collections::BTreeSet;

/// One tracepoint that we want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Its folder.
    pub(super) system: &'static str,
    /// Its name.
    pub(super) event: &'static str,
    /// What cannot be seen without it; nothing where a kernel that lacks the event lacks the thing too.
    pub(super) loses: Option<&'static SourceLoss>,
    /// Whether a coarse recording has it, too.
    in_coarse: bool,
}

impl Wanted {
    /// Whether a recording of this grain asks for it; one of a grain that is not known asks for all.
    pub(super) fn is_in(&self, grain: &EventGrain) -> bool {
        self.in_coarse || *grain != EventGrain::Coarse
    }
}

const fn want(system: &'static str, event: &'static str, loses: &'static SourceLoss) -> Wanted {
    Wanted {
        system,
        event,
        loses: Some(loses),
        in_coarse: true,
    }
}

/// One that says what was done within an interrupt or a turn that other records tell: left out of a coarse recording.
const fn inner(system: &'static str, event: &'static str, loses: &'static SourceLoss) -> Wanted {
    Wanted {
        in_coarse: false,
        ..want(system, event, loses)
    }
}

/// One that nothing is lost without.
const fn unneeded(system: &'static str, event: &'static str) -> Wanted {
    Wanted {
        system,
        event,
        loses: None,
        in_coarse: true,
    }
}

/// Recorded on the measured CPUs. A coarse recording has what tells who had the CPU, and whatever a verdict would be
/// wrong without, and not merely say less.
pub(super) const LOCAL: &[Wanted] = &[
    want("sched", "sched_switch", &SourceLoss::Switches),
    want("irq", "irq_handler_entry", &SourceLoss::DeviceInterrupts),
    want("irq", "irq_handler_exit", &SourceLoss::DeviceInterrupts),
    // They run after the interrupt that raised them: its records do not have their time.
    want("irq", "softirq_entry", &SourceLoss::Softirqs),
    want("irq", "softirq_exit", &SourceLoss::Softirqs),
    want("nmi", "nmi_handler", &SourceLoss::NmiHandlers),
    // Without them a work item is its worker's turn.
    inner(
        "workqueue",
        "workqueue_execute_start",
        &SourceLoss::WorkItems,
    ),
    inner("workqueue", "workqueue_execute_end", &SourceLoss::WorkItems),
    // Without them a function is the TIMER softirq.
    inner("timer", "timer_expire_entry", &SourceLoss::TimerFunctions),
    inner("timer", "timer_expire_exit", &SourceLoss::TimerFunctions),
    // Half of what a tick writes. Without them a function is the local timer's interrupt, and it is not known when a
    // tick was due: on a virtual machine the time before a late one is unresolved.
    inner(
        "timer",
        "hrtimer_expire_entry",
        &SourceLoss::HrtimerFunctions,
    ),
    inner(
        "timer",
        "hrtimer_expire_exit",
        &SourceLoss::HrtimerFunctions,
    ),
    // One after each interrupt where a tick could stop. No verdict reads it.
    inner("timer", "tick_stop", &SourceLoss::TickDependency),
    // Several within one interrupt. Without them a called function is that interrupt, by nobody.
    inner("csd", "csd_function_entry", &SourceLoss::CalledFunctions),
    inner("csd", "csd_function_exit", &SourceLoss::CalledFunctions),
    // A CPU that a probe has to itself takes none. A fault that the kernel counts and that left no record would be
    // taken for the cause of another stall of the same moment, and a watched CPU would be told to have had none.
    want("exceptions", "page_fault_user", &SourceLoss::PageFaults),
    want("exceptions", "page_fault_kernel", &SourceLoss::PageFaults),
    // Rare, and without it a change would be taken for something outside of this kernel.
    want("power", "cpu_frequency", &SourceLoss::FrequencyChanges),
    // A CPU that is spun on never idles. Of one that sleeps, a timer that came late after the way out of idle would
    // be taken for that way.
    want("power", "cpu_idle", &SourceLoss::IdleStates),
    // A kernel without it handles no machine check.
    unneeded("mce", "mce_record"),
];

/// Recorded on the measured CPUs where a record says more than others do.
pub(super) const LOCAL_FILTERED: &[(Wanted, EventFilter)] = &[
    // A switch to another process has one, too, of reason 0 (`TLB_FLUSH_ON_TASK_SWITCH`), that the switch tells. No verdict
    // reads the others.
    (
        inner("tlb", "tlb_flush", &SourceLoss::TlbFlushes),
        EventFilter::AtLeast("reason", 1),
    ),
];

/// The beginning of a thread.
pub(super) const NEW_TASK: Wanted = want("task", "task_newtask", &SourceLoss::ThreadStarts);

/// A thread has another name. As [`PRICED`], and for the whole recording.
pub(super) const RENAMED: Wanted = want("task", "task_rename", &SourceLoss::Renames);

/// A thread is charged for its running: recorded where threads are followed. One that asks for its own CPU time is
/// charged each time; that would flood the buffer.
pub(super) const CHARGE: (Wanted, Option<EventFilter>) = (
    want("sched", "sched_stat_runtime", &SourceLoss::Charges),
    Some(EventFilter::AtLeast("runtime", 10_000)),
);

/// The folder whose every `X_entry` and `X_exit` is recorded on the measured CPUs, whatever the grain.
pub(super) const VECTORS: &str = "irq_vectors";

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
pub(super) const MIGRATE: Wanted = want("sched", "sched_migrate_task", &SourceLoss::Migrations);
/// Its target where threads are followed on some CPUs only: who leaves one waits there no more.
pub(super) const MIGRATE_EITHER: EventFilter = EventFilter::Either("dest_cpu", "orig_cpu");
/// Recorded on all CPUs beside the senders, where threads are not followed: ids are used again.
pub(super) const NEWBORN: Wanted = want("task", "task_newtask", &SourceLoss::ReusedIds);
/// Recorded while it is measured what a record costs, and then no more: anybody may rename himself as often as
/// he likes.
pub(super) const PRICED: Wanted = unneeded("task", "task_rename");

/// Recorded on all CPUs, filtered by target. What is matched with a record that a coarse recording does not have names
/// nobody there.
pub(super) const SENDERS: &[(Wanted, EventFilter)] = &[
    (
        want("ipi", "ipi_send_cpu", &SourceLoss::IpiSender),
        EventFilter::Cpu("cpu"),
    ),
    (
        want("ipi", "ipi_send_cpumask", &SourceLoss::MaskIpiSender),
        EventFilter::Mask("cpumask"),
    ),
    (
        inner("csd", "csd_queue_cpu", &SourceLoss::CallSender),
        EventFilter::Cpu("cpu"),
    ),
    (
        want("sched", "sched_waking", &SourceLoss::Wakers),
        EventFilter::Cpu("target_cpu"),
    ),
    (
        inner(
            "workqueue",
            "workqueue_queue_work",
            &SourceLoss::WorkQueuers,
        ),
        EventFilter::Work,
    ),
    (MIGRATE, EventFilter::Cpu("dest_cpu")),
    // SIGSTOP, SIGTSTP, SIGTTIN and SIGTTOU.
    (
        want("signal", "signal_generate", &SourceLoss::Stoppers),
        EventFilter::Between("sig", 19, 22),
    ),
];

/// Events that a kernel lacks, each as `system:event`, and what is lost by that.
#[derive(Debug, Default)]
pub(crate) struct Missing {
    pub(crate) events: Vec<String>,
    pub(crate) losses: BTreeSet<SourceLoss>,
}

impl Missing {
    /// Of those wanted events without which something is lost. `has` says whether there is a `system/event`.
    fn of<'a>(wanted: impl Iterator<Item = &'a Wanted>, has: impl Fn(&str) -> bool) -> Missing {
        let mut missing = Missing::default();
        for wanted in wanted.filter(|w| !has(&format!("{}/{}", w.system, w.event))) {
            missing.add(wanted);
        }
        missing
    }

    /// One more, if anything is lost without it.
    pub(super) fn add(&mut self, wanted: &Wanted) {
        if let Some(loss) = wanted.loses {
            self.events
                .push(format!("{}:{}", wanted.system, wanted.event));
            self.losses.insert(loss.clone());
        }
    }

    /// There is no interrupt vector.
    pub(super) fn add_vectors(&mut self) {
        self.events.push(format!("{VECTORS}:*"));
        self.losses.insert(SourceLoss::Vectors);
    }
}

impl Tracefs {
    /// Whether the kernel has an event, named `system/event`.
    #[must_use]
    pub fn has_event(&self, event: &str) -> bool {
        self.machine()
            .exists(format!("{}/events/{event}/format", self.root()))
    }
}

fn has(tracefs: &Tracefs) -> impl Fn(&str) -> bool {
    |event| tracefs.has_event(event)
}

/// Events of the measured CPUs that this kernel lacks, and what is lost by that.
pub(crate) fn missing_local(tracefs: &Tracefs) -> Missing {
    let filtered = LOCAL_FILTERED.iter().map(|(wanted, _)| wanted);
    let mut missing = Missing::of(LOCAL.iter().chain(filtered), has(tracefs));
    let vectors = tracefs
        .machine()
        .list(format!("{}/events/{VECTORS}", tracefs.root()));
    if !vectors.iter().any(|name| name.ends_with("_entry")) {
        missing.add_vectors();
    }
    missing
}

/// Events of senders that this kernel lacks, and what is lost by that.
pub(crate) fn missing_senders(tracefs: &Tracefs) -> Missing {
    Missing::of(SENDERS.iter().map(|(wanted, _)| wanted), has(tracefs))
}
