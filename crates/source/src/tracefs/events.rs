//! The recorded events, and what is missing without each.

use super::Tracefs;
use jitterscope_model::{EventGrain, SourceLoss};
use std::collections::BTreeSet;

/// A tracepoint that we record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) system: &'static str,
    pub(super) event: &'static str,
    /// What is missing without it; `None` if a kernel without the event also does not have the activity.
    pub(super) loses: Option<&'static SourceLoss>,
    /// Whether a coarse recording includes it.
    in_coarse: bool,
}

impl Wanted {
    /// Whether a recording with this grain includes it; an unknown grain includes all.
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

/// An event inside an interrupt or a thread's turn that other records already show: coarse recordings leave it out.
const fn inner(system: &'static str, event: &'static str, loses: &'static SourceLoss) -> Wanted {
    Wanted {
        in_coarse: false,
        ..want(system, event, loses)
    }
}

/// An event whose absence loses nothing.
const fn unneeded(system: &'static str, event: &'static str) -> Wanted {
    Wanted {
        system,
        event,
        loses: None,
        in_coarse: true,
    }
}

/// Recorded on the measured CPUs. A coarse recording includes the events that show who had the CPU, and those without
/// which a verdict would be wrong, and not only less detailed.
pub(super) const LOCAL: &[Wanted] = &[
    want("sched", "sched_switch", &SourceLoss::Switches),
    want("irq", "irq_handler_entry", &SourceLoss::DeviceInterrupts),
    want("irq", "irq_handler_exit", &SourceLoss::DeviceInterrupts),
    // They run after the interrupt that raised them: its records do not contain their time.
    want("irq", "softirq_entry", &SourceLoss::Softirqs),
    want("irq", "softirq_exit", &SourceLoss::Softirqs),
    want("nmi", "nmi_handler", &SourceLoss::NmiHandlers),
    // Without them a work item appears as its worker's turn.
    inner(
        "workqueue",
        "workqueue_execute_start",
        &SourceLoss::WorkItems,
    ),
    inner("workqueue", "workqueue_execute_end", &SourceLoss::WorkItems),
    // Without them a function appears as the TIMER softirq.
    inner("timer", "timer_expire_entry", &SourceLoss::TimerFunctions),
    inner("timer", "timer_expire_exit", &SourceLoss::TimerFunctions),
    // Half of a tick's records. Without them a function appears as the local timer's interrupt, and the due time of a
    // tick is unknown: on a virtual machine, the time before a late one is unresolved.
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
    // One after each interrupt that could stop the tick. No verdict uses it.
    inner("timer", "tick_stop", &SourceLoss::TickDependency),
    // Several within one interrupt. Without them a called function appears as that interrupt, without a sender.
    inner("csd", "csd_function_entry", &SourceLoss::CalledFunctions),
    inner("csd", "csd_function_exit", &SourceLoss::CalledFunctions),
    // A CPU that a probe has to itself has none. Without a record, a fault in the kernel's count would be taken for the
    // cause of another stall of the same moment, and a watched CPU would seem to have none.
    want("exceptions", "page_fault_user", &SourceLoss::PageFaults),
    want("exceptions", "page_fault_kernel", &SourceLoss::PageFaults),
    // Rare. Without it a frequency change would be taken for something outside of this kernel.
    want("power", "cpu_frequency", &SourceLoss::FrequencyChanges),
    // A CPU with a spinning probe never idles. On a CPU that sleeps, a late timer after an idle exit would be taken for
    // the idle exit.
    want("power", "cpu_idle", &SourceLoss::IdleStates),
    // A kernel without it handles no machine check.
    unneeded("mce", "mce_record"),
];

/// Recorded on the measured CPUs only with a filter, because the other records are redundant.
pub(super) const LOCAL_FILTERED: &[(Wanted, EventFilter)] = &[
    // A switch to another process also writes one, with reason 0 (`TLB_FLUSH_ON_TASK_SWITCH`), which the switch already
    // shows. No verdict uses the others.
    (
        inner("tlb", "tlb_flush", &SourceLoss::TlbFlushes),
        EventFilter::AtLeast("reason", 1),
    ),
];

/// The start of a thread.
pub(super) static NEW_TASK: Wanted = want("task", "task_newtask", &SourceLoss::ThreadStarts);

/// A thread gets another name, on all CPUs. Any thread may rename itself as often as it likes, so very frequent ones
/// are filtered out. It also serves to measure the cost of a record, before the first drain.
pub(super) static RENAMED: Wanted = want("task", "task_rename", &SourceLoss::Renames);

/// A thread or a process moves to another control group, on all CPUs. Without it, the group of a process that moves and
/// ends before it is read is unknown, or that of its creator.
pub(super) const CGROUP_ATTACH: Wanted = unneeded("cgroup", "cgroup_attach_task");

/// The scheduler charges a thread for its run time; recorded where threads are followed. A thread that asks for its own
/// CPU time is charged each time, which would flood the buffer.
pub(super) static CHARGE: (Wanted, Option<EventFilter>) = (
    want("sched", "sched_stat_runtime", &SourceLoss::Charges),
    Some(EventFilter::AtLeast("runtime", 10_000)),
);

/// The folder whose every `X_entry` and `X_exit` is recorded on the measured CPUs, for every grain.
pub(super) const VECTORS: &str = "irq_vectors";

/// How to filter an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventFilter {
    /// By target: a field that is a CPU number.
    Cpu(&'static str),
    /// By target: two fields that are CPU numbers; either may match.
    Either(&'static str, &'static str),
    /// By target: a field that is a set of CPUs.
    Mask(&'static str),
    /// By target: the CPU number of a work item, which may also be "any CPU".
    Work,
    /// By value: a field that must be at least this.
    AtLeast(&'static str, u64),
    /// By kind: signals that stop a thread, and signals from a process's timer.
    Signals,
}

/// A thread moves to another CPU.
pub(super) const MIGRATE: Wanted = want("sched", "sched_migrate_task", &SourceLoss::Migrations);
/// Its filter where threads are followed on some CPUs only: a thread that leaves one no longer waits there.
pub(super) const MIGRATE_EITHER: EventFilter = EventFilter::Either("dest_cpu", "orig_cpu");
/// Recorded on all CPUs with the senders, where threads are not followed, because ids are reused.
pub(super) const NEWBORN: Wanted = want("task", "task_newtask", &SourceLoss::ReusedIds);
/// Recorded on all CPUs, filtered by target. In a coarse recording, an event whose counterpart is missing there names
/// no sender.
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
    (
        want("signal", "signal_generate", &SourceLoss::Stoppers),
        EventFilter::Signals,
    ),
];

/// Events that a kernel does not have, each as `system:event`, and what is missing without them.
#[derive(Debug, Default)]
pub(crate) struct Missing {
    pub(crate) events: Vec<String>,
    pub(crate) losses: BTreeSet<SourceLoss>,
}

impl Missing {
    /// The missing ones of the wanted events, except those whose absence loses nothing. `has` says whether a
    /// `system/event` exists.
    fn of<'a>(wanted: impl Iterator<Item = &'a Wanted>, has: impl Fn(&str) -> bool) -> Missing {
        let mut missing = Missing::default();
        for wanted in wanted.filter(|w| !has(&format!("{}/{}", w.system, w.event))) {
            missing.add(wanted);
        }
        missing
    }

    /// Adds an event, unless its absence loses nothing.
    pub(super) fn add(&mut self, wanted: &Wanted) {
        if let Some(loss) = wanted.loses {
            self.events
                .push(format!("{}:{}", wanted.system, wanted.event));
            self.losses.insert(loss.clone());
        }
    }

    /// Adds the interrupt vectors.
    pub(super) fn add_vectors(&mut self) {
        self.events.push(format!("{VECTORS}:*"));
        self.losses.insert(SourceLoss::Vectors);
    }
}

/// Whether any recording has this event.
pub(crate) fn is_recorded(system: &str, event: &str) -> bool {
    let is_half = event.ends_with("_entry") || event.ends_with("_exit");
    let [local, senders] = every();
    (system == VECTORS && is_half)
        || local
            .into_iter()
            .chain(senders)
            .chain([&CGROUP_ATTACH])
            .any(|wanted| (wanted.system, wanted.event) == (system, event))
}

/// The system of an event that a recording of our own has; of the interrupt vectors only those whose names say it.
pub(crate) fn system_of(event: &str) -> Option<&'static str> {
    let known = every().into_iter().flatten().chain([&CGROUP_ATTACH]);
    let mut named = known.filter(|wanted| wanted.event == event);
    let is_vector = event
        .strip_suffix("_entry")
        .or_else(|| event.strip_suffix("_exit"))
        .is_some_and(|vector| NAMED_VECTORS.contains(&vector));
    named
        .next()
        .map(|wanted| wanted.system)
        .or(is_vector.then_some(VECTORS))
}

/// The interrupt vectors of x86 that have events.
const NAMED_VECTORS: [&str; 12] = [
    "local_timer",
    "reschedule",
    "call_function",
    "call_function_single",
    "irq_work",
    "x86_platform_ipi",
    "spurious_apic",
    "error_apic",
    "thermal_apic",
    "threshold_apic",
    "deferred_error_apic",
    "posted_intr",
];

/// The events of measured CPUs, and those of senders, of all kinds of recordings.
fn every() -> [Vec<&'static Wanted>; 2] {
    let local = LOCAL
        .iter()
        .chain(LOCAL_FILTERED.iter().map(|(wanted, _)| wanted))
        .chain([&CHARGE.0, &NEW_TASK]);
    let senders = SENDERS.iter().map(|(wanted, _)| wanted).chain([&RENAMED]);
    [local.collect(), senders.collect()]
}

/// The events of both sides that have no record. `has` says whether a `system:event` has one; of the interrupt vectors
/// any will do.
pub(crate) fn missing_in(has: impl Fn(&str) -> bool) -> [Missing; 2] {
    let [local, senders] = every()
        .map(|wanted| Missing::of(wanted.into_iter(), |event| has(&event.replace('/', ":"))));
    let mut local = local;
    if !has(&format!("{VECTORS}:*")) {
        local.add_vectors();
    }
    [local, senders]
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

/// The missing events of the measured CPUs, and what is missing without them.
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

/// The missing events of senders, and what is missing without them.
pub(crate) fn missing_senders(tracefs: &Tracefs) -> Missing {
    Missing::of(SENDERS.iter().map(|(wanted, _)| wanted), has(tracefs))
}
