//! What a culprit is, in a phrase.
//!
//! Names are those of kernel functions, vectors and threads; what they do is taken from the kernel's
//! documentation and source. A name that is not in a table gets its kind's phrase.

mod functions;
mod threads;
mod verdicts;

use jitterscope_model::{CulpritKind, Subject};

/// A table from a name to its phrase.
type Table = &'static [(&'static str, &'static str)];

/// All tables of functions and vectors.
const FUNCTIONS: [Table; 7] = [
    functions::TIMERS,
    functions::WORK,
    functions::CALLS,
    functions::SOFTIRQS,
    functions::VECTORS,
    functions::NMIS,
    functions::FAULTS,
];

/// What a culprit is, in a phrase.
#[must_use]
pub fn explain(subject: &Subject) -> String {
    known(subject).unwrap_or_else(|| generic(subject)).to_owned()
}

/// Whether this very name is in a table of functions or vectors: a word of the kernel, not of who uses it.
pub(crate) fn is_function(name: &str) -> bool {
    FUNCTIONS.iter().any(|table| find(table, name).is_some())
}

/// Whether this very name is that of an interrupt vector.
pub(crate) fn is_vector(name: &str) -> bool {
    find(functions::VECTORS, name).is_some()
}

/// Whether a thread's name is one of the kernel's, or of a daemon that most machines have: whole, or a known
/// beginning with nothing but a CPU's or a worker's number behind it.
pub(crate) fn is_kernel_thread(name: &str) -> bool {
    threads::is_common(name)
}

/// A function's name without what the compiler appends: `.isra.0`, `.constprop.1`, `.cold`.
fn plain(name: &str) -> &str {
    match name.split_once('.') {
        Some((function, rest))
            if ["isra", "constprop", "part", "cold", "llvm"].iter().any(|s| rest.starts_with(s)) =>
        {
            function
        }
        _ => name,
    }
}

fn known(subject: &Subject) -> Option<&'static str> {
    match subject {
        Subject::Thread(task) => threads::of(task),
        Subject::Work(work) => find(functions::WORK, plain(work.function.as_deref()?)),
        Subject::Vector(vector) => find(functions::VECTORS, vector),
        Subject::Timer { .. } => find(functions::TIMERS, plain(&subject.name())),
        Subject::Softirq(_) => find(functions::SOFTIRQS, &subject.name()),
        Subject::Call(name) | Subject::Ipi(name) => find(functions::CALLS, plain(name)),
        Subject::Nmi(handler) => find(functions::NMIS, plain(handler)),
        Subject::PageFault { .. } => find(functions::FAULTS, &subject.name()),
        Subject::Verdict(verdict, _) => verdicts::find(*verdict),
        Subject::Interrupt { .. }
        | Subject::MachineCheck { .. }
        | Subject::Throttle(_)
        | Subject::Quota(_)
        | Subject::Others(_)
        | Subject::Unknown { .. } => None,
    }
}

fn find(table: Table, name: &str) -> Option<&'static str> {
    table.iter().find(|(known, _)| *known == name).map(|(_, phrase)| *phrase)
}

/// What all of a kind have in common.
fn generic(subject: &Subject) -> &'static str {
    match subject.kind() {
        CulpritKind::Thread => "another thread that ran on the CPU",
        CulpritKind::Kworker if matches!(subject, Subject::Work(work) if work.function.is_none()) => {
            "a kernel worker whose work was not seen"
        }
        CulpritKind::Kworker => "deferred kernel work",
        CulpritKind::Irq => "a device's interrupt handler",
        CulpritKind::Timer => "a kernel timer function",
        CulpritKind::Softirq => "deferred interrupt work",
        CulpritKind::Ipi => "a call from another CPU",
        CulpritKind::PageFault => "a page fault of the measured thread",
        CulpritKind::Nmi => "a non-maskable interrupt",
        CulpritKind::Mce => "a machine check: the hardware reported an error",
        CulpritKind::RtThrottle => {
            "the scheduler held the real-time thread back (kernel.sched_rt_runtime_us)"
        }
        CulpritKind::Quota => "its control group had used up its CPU quota (cpu.max, cpu.cfs_quota_us)",
        CulpritKind::Stopped => "the thread was stopped, not kept waiting",
        CulpritKind::Switch => "the scheduler's own path to another thread and back",
        CulpritKind::Hypervisor => "the host took the CPU, or was late",
        CulpritKind::Firmware => "firmware took the CPU, unseen by the kernel",
        CulpritKind::Unresolved => "nothing that was recorded explains it",
        CulpritKind::Loss => "kernel events were lost nearby, so no verdict is given",
        CulpritKind::Unknown => "of a kind that this version does not know",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Name, Task, Verdict, Work};

    #[test]
    fn the_usual_suspects_are_known() {
        let thread = |comm: &str| Subject::Thread(Task { comm: comm.into(), ..Task::default() });
        let timer = |function: &str| Subject::Timer { function: Some(function.into()), source: None };
        let work =
            |function: &str| Subject::Work(Work { function: Some(Name::from(function)), ..Work::default() });
        for (subject, word) in [
            (timer("tick_nohz_handler"), "tick"),
            (work("vmstat_update"), "vm.stat_interval"),
            (Subject::Call("ipi_mb".into()), "membarrier"),
            (Subject::Call("flush_tlb_func".into()), "TLB"),
            (Subject::Ipi("reschedule".into()), "woke"),
            (thread("ksoftirqd/3"), "softirq"),
            (thread("migration/0"), "stopper"),
            (Subject::Softirq(3), "network"),
            (Subject::verdict(Verdict::LateInterrupt), "late"),
            (timer("tick_nohz_handler.isra.0"), "tick"),
        ] {
            let phrase = explain(&subject);
            assert!(phrase.contains(word), "{subject:?}: {phrase}");
            assert_ne!(phrase, generic(&subject), "{subject:?}");
        }
    }

    #[test]
    fn every_kind_has_a_phrase_for_a_name_it_never_saw() {
        for kind in CulpritKind::ALL {
            let name = || Name::from("no_such_name");
            let subject = Subject::Unknown { kind: kind.as_str().into(), name: name(), detail: name() };
            assert!(!explain(&subject).is_empty());
        }
        assert!(Verdict::ALL.iter().all(|verdict| !explain(&Subject::verdict(*verdict)).is_empty()));
    }

    #[test]
    fn phrases_are_short_and_no_name_is_twice_in_a_table() {
        for table in FUNCTIONS.into_iter().chain([threads::WHOLE, threads::PREFIXES]) {
            let mut names: Vec<_> = table.iter().map(|(name, _)| name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), table.len());
            for (name, phrase) in table {
                assert!(phrase.len() <= 72 && !phrase.is_empty(), "{name}: {}", phrase.len());
                assert!(!phrase.ends_with('.'), "{name}");
            }
        }
    }
}
