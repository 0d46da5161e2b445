//! LTTng's names of the kernel's events and of their fields, where they differ from the kernel's own.

use crate::tracedat::is_read;

/// An event: the kernel's system and event, LTTng's event, and fields, the kernel's name first.
type Renamed = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const TID: &[(&str, &str)] = &[("pid", "tid")];

const RENAMED: &[Renamed] = &[
    (
        "sched",
        "sched_switch",
        "sched_switch",
        &[("prev_pid", "prev_tid"), ("next_pid", "next_tid")],
    ),
    ("sched", "sched_waking", "sched_waking", TID),
    ("sched", "sched_migrate_task", "sched_migrate_task", TID),
    ("sched", "sched_stat_runtime", "sched_stat_runtime", TID),
    ("irq", "irq_handler_entry", "irq_handler_entry", &[]),
    ("irq", "irq_handler_exit", "irq_handler_exit", &[]),
    ("irq", "softirq_entry", "irq_softirq_entry", &[]),
    ("irq", "softirq_exit", "irq_softirq_exit", &[]),
    (
        "timer",
        "hrtimer_expire_entry",
        "timer_hrtimer_expire_entry",
        &[],
    ),
    (
        "timer",
        "hrtimer_expire_exit",
        "timer_hrtimer_expire_exit",
        &[],
    ),
    ("timer", "timer_expire_entry", "timer_expire_entry", &[]),
    ("timer", "timer_expire_exit", "timer_expire_exit", &[]),
    (
        "workqueue",
        "workqueue_execute_start",
        "workqueue_execute_start",
        &[],
    ),
    (
        "workqueue",
        "workqueue_execute_end",
        "workqueue_execute_end",
        &[],
    ),
    (
        "workqueue",
        "workqueue_queue_work",
        "workqueue_queue_work",
        &[],
    ),
    ("power", "cpu_idle", "power_cpu_idle", &[]),
    ("power", "cpu_frequency", "power_cpu_frequency", &[]),
    ("signal", "signal_generate", "signal_generate", &[]),
    (
        "exceptions",
        "page_fault_user",
        "x86_exceptions_page_fault_user",
        &[],
    ),
    (
        "exceptions",
        "page_fault_kernel",
        "x86_exceptions_page_fault_kernel",
        &[],
    ),
];

/// The interrupt vectors, whose names the kernel chooses.
const VECTORS: (&str, &str) = ("irq_vectors", "x86_irq_vectors_");
/// Older versions of LTTng record only the end of a wake-up.
const WOKEN: &str = "sched_wakeup";

/// LTTng's name of an event; `SYSTEM:EVENT`, as perf names it, if LTTng has none.
#[must_use]
pub fn event_of(system: &str, event: &str) -> String {
    if system == VECTORS.0 {
        return format!("{}{event}", VECTORS.1);
    }
    let known = RENAMED
        .iter()
        .find(|known| (known.0, known.1) == (system, event));
    known.map_or_else(|| format!("{system}:{event}"), |known| known.2.to_owned())
}

/// LTTng's name of a field of the kernel's event.
#[must_use]
pub fn field_of<'a>(system: &str, event: &str, field: &'a str) -> &'a str {
    let known = RENAMED
        .iter()
        .find(|known| (known.0, known.1) == (system, event));
    let renamed = known.and_then(|known| known.3.iter().find(|(own, _)| *own == field));
    renamed.map_or(field, |(_, theirs)| theirs)
}

/// The kernel's system and name of an event, if it is read. `wakes`: no other event tells of wake-ups.
pub(super) fn kernel_event(name: &str, wakes: bool) -> Option<(&'static str, String)> {
    let of_system = |system: &'static str, event: &str| {
        (!event.is_empty() && is_read(system, event)).then(|| (system, event.to_owned()))
    };
    if let Some((system, event)) = name.split_once(':') {
        let systems = RENAMED
            .iter()
            .map(|known| known.0)
            .chain(OTHERS.iter().copied());
        let known = systems.chain([VECTORS.0]).find(|known| *known == system)?;
        return of_system(known, event);
    }
    if let Some(vector) = name.strip_prefix(VECTORS.1) {
        return of_system(VECTORS.0, vector);
    }
    if wakes && name == WOKEN {
        return of_system("sched", "sched_waking");
    }
    let theirs = RENAMED.iter().find(|known| known.2 == name);
    let known = theirs.or_else(|| RENAMED.iter().find(|known| known.1 == name))?;
    of_system(known.0, known.1)
}

/// Systems whose events LTTng does not have.
const OTHERS: &[&str] = &["task", "cgroup", "nmi", "csd", "ipi", "tlb", "mce"];

/// The kernel's name of a field.
pub(super) fn kernel_field<'a>(system: &str, event: &str, field: &'a str) -> &'a str {
    let known = RENAMED
        .iter()
        .find(|known| (known.0, known.1) == (system, event));
    let renamed = known.and_then(|known| known.3.iter().find(|(_, theirs)| *theirs == field));
    renamed.map_or(field, |(own, _)| own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_found_again_by_the_name_that_it_gets() {
        for (system, event) in [
            ("sched", "sched_switch"),
            ("irq", "softirq_entry"),
            ("irq_vectors", "local_timer_entry"),
            ("csd", "csd_function_entry"),
            ("ipi", "ipi_send_cpu"),
            ("timer", "hrtimer_expire_entry"),
            ("task", "task_rename"),
        ] {
            let name = event_of(system, event);
            assert_eq!(
                kernel_event(&name, false),
                Some((system, event.to_owned())),
                "{name}"
            );
        }
        assert_eq!(event_of("irq", "softirq_exit"), "irq_softirq_exit");
        assert_eq!(field_of("sched", "sched_switch", "prev_pid"), "prev_tid");
        assert_eq!(
            kernel_field("sched", "sched_switch", "next_tid"),
            "next_pid"
        );
        assert_eq!(
            kernel_field("sched", "sched_switch", "prev_comm"),
            "prev_comm"
        );
    }

    #[test]
    fn others_names_are_known_too() {
        let of = |name| kernel_event(name, false).map(|(_, event)| event);
        // perf's, and those of older versions of LTTng.
        assert_eq!(of("sched:sched_switch").as_deref(), Some("sched_switch"));
        assert_eq!(of("softirq_entry").as_deref(), Some("softirq_entry"));
        assert_eq!(of("sched_wakeup"), None);
        assert_eq!(
            kernel_event("sched_wakeup", true).unwrap().1,
            "sched_waking"
        );
        assert_eq!(of("syscall_entry_read"), None);
        assert_eq!(of("kvm:sched_switch"), None);
    }
}
