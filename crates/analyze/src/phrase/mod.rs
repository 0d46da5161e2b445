//! What a culprit is, in a phrase.
//!
//! Names are those of kernel functions, vectors and threads; what they do is taken from the kernel's
//! documentation and source. A name that is not in a table gets its kind's phrase.

mod functions;
mod threads;

use jitterscope_model::CulpritKind;

/// A table from a name to its phrase.
type Table = &'static [(&'static str, &'static str)];

/// What a culprit of this kind and name is, in a phrase.
#[must_use]
pub fn explain(kind: CulpritKind, name: &str) -> String {
    known(kind, plain(name)).map_or_else(|| generic(kind, name).to_owned(), str::to_owned)
}

/// Whether this very name is in the table of its kind: a word of the kernel, not of who uses it.
pub(crate) fn is_listed(kind: CulpritKind, name: &str) -> bool {
    match kind {
        CulpritKind::Thread => is_kernel_thread(name),
        _ => known(kind, name).is_some(),
    }
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

fn known(kind: CulpritKind, name: &str) -> Option<&'static str> {
    match kind {
        CulpritKind::Thread => threads::find(name),
        CulpritKind::Kworker => find(functions::WORK, name),
        CulpritKind::Irq => find(functions::VECTORS, name),
        CulpritKind::Timer => find(functions::TIMERS, name),
        CulpritKind::Softirq => find(functions::SOFTIRQS, name).or_else(|| find(functions::TIMERS, name)),
        CulpritKind::Ipi => find(functions::CALLS, name),
        CulpritKind::Nmi => find(functions::NMIS, name),
        CulpritKind::PageFault => find(functions::FAULTS, name),
        CulpritKind::Hypervisor | CulpritKind::Firmware | CulpritKind::Unresolved => {
            find(functions::VERDICTS, name)
        }
        CulpritKind::Switch => find(functions::WAKING, name),
        CulpritKind::Mce | CulpritKind::RtThrottle | CulpritKind::Loss => None,
    }
}

fn find(table: Table, name: &str) -> Option<&'static str> {
    table.iter().find(|(known, _)| *known == name).map(|(_, phrase)| *phrase)
}

/// What all of a kind have in common.
fn generic(kind: CulpritKind, name: &str) -> &'static str {
    match kind {
        CulpritKind::Thread => "another thread that ran on the CPU",
        CulpritKind::Kworker if name.starts_with("kworker/") => "a kernel worker whose work was not seen",
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
        CulpritKind::Switch => "the scheduler's own path to another thread and back",
        CulpritKind::Hypervisor => "the host took the CPU, or was late",
        CulpritKind::Firmware => "firmware took the CPU, unseen by the kernel",
        CulpritKind::Unresolved => "nothing that was recorded explains it",
        CulpritKind::Loss => "kernel events were lost nearby, so no verdict is given",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_suspects_are_known() {
        for (kind, name, word) in [
            (CulpritKind::Timer, "tick_nohz_handler", "tick"),
            (CulpritKind::Kworker, "vmstat_update", "vm.stat_interval"),
            (CulpritKind::Ipi, "ipi_mb", "membarrier"),
            (CulpritKind::Ipi, "flush_tlb_func", "TLB"),
            (CulpritKind::Thread, "ksoftirqd/3", "softirq"),
            (CulpritKind::Thread, "migration/0", "stopper"),
            (CulpritKind::Softirq, "NET_RX", "network"),
            (CulpritKind::Hypervisor, "late interrupt", "late"),
            (CulpritKind::Timer, "tick_nohz_handler.isra.0", "tick"),
        ] {
            let phrase = explain(kind, name);
            assert!(phrase.contains(word), "{name}: {phrase}");
            assert_ne!(phrase, generic(kind, name), "{name}");
        }
    }

    #[test]
    fn every_kind_has_a_phrase_for_a_name_it_never_saw() {
        for kind in CulpritKind::ALL {
            assert!(!explain(kind, "no_such_name").is_empty());
        }
    }

    #[test]
    fn phrases_are_short_and_no_name_is_twice_in_a_table() {
        for table in [
            functions::TIMERS,
            functions::WORK,
            functions::CALLS,
            functions::SOFTIRQS,
            functions::VECTORS,
            functions::NMIS,
            functions::FAULTS,
            functions::WAKING,
            functions::VERDICTS,
            threads::WHOLE,
            threads::PREFIXES,
        ] {
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
