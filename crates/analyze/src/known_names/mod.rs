//! Public names: of kernel functions, vectors and threads, and of common daemons.
//!
//! A redacted run keeps them, and reports explain what each does.

mod functions;
mod threads;

use jitterscope_model::{NameOf, SchedClass, Subject, Task};

/// Names, and what their bearers do, in a phrase.
type Table = &'static [(&'static str, &'static str)];

/// A list of names, by the kind of their bearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameList {
    /// Functions of high-resolution timers and of the timer wheel.
    Timers,
    /// Work functions of kernel workers.
    Work,
    /// Functions that one CPU calls on another, and the vectors that carry them.
    Calls,
    Softirqs,
    /// Interrupt vectors that are neither timer nor call.
    Vectors,
    /// Handlers of non-maskable interrupts.
    Nmis,
    Faults,
    /// Kernel threads, by their whole name.
    Threads,
    /// Kernel threads, by the beginning of their name.
    ThreadPrefixes,
    /// Daemons, by the whole name of their thread.
    Daemons,
}

impl NameList {
    #[cfg(test)]
    const ALL: [NameList; 10] = [
        NameList::Timers,
        NameList::Work,
        NameList::Calls,
        NameList::Softirqs,
        NameList::Vectors,
        NameList::Nmis,
        NameList::Faults,
        NameList::Threads,
        NameList::ThreadPrefixes,
        NameList::Daemons,
    ];

    /// The lists of functions and vectors.
    const FUNCTIONS: [NameList; 7] = [
        NameList::Timers,
        NameList::Work,
        NameList::Calls,
        NameList::Softirqs,
        NameList::Vectors,
        NameList::Nmis,
        NameList::Faults,
    ];

    /// The list; longer beginnings come before shorter ones.
    fn table(self) -> Table {
        match self {
            NameList::Timers => functions::TIMERS,
            NameList::Work => functions::WORK,
            NameList::Calls => functions::CALLS,
            NameList::Softirqs => functions::SOFTIRQS,
            NameList::Vectors => functions::VECTORS,
            NameList::Nmis => functions::NMIS,
            NameList::Faults => functions::FAULTS,
            NameList::Threads => threads::WHOLE,
            NameList::ThreadPrefixes => threads::PREFIXES,
            NameList::Daemons => threads::DAEMONS,
        }
    }

    fn find(self, name: &str) -> Option<KnownName> {
        self.first(|known| known == name)
    }

    fn first(self, matches: impl Fn(&str) -> bool) -> Option<KnownName> {
        let (name, does) = self.table().iter().find(|(known, _)| matches(known))?;
        Some(KnownName {
            list: self,
            name,
            does,
        })
    }
}

/// A name of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KnownName {
    /// The list with the name.
    pub list: NameList,
    /// The name, or its beginning, as in the list.
    pub name: &'static str,
    /// What its bearer does, in a phrase.
    pub does: &'static str,
}

impl KnownName {
    pub const IDLE: KnownName = KnownName {
        list: NameList::ThreadPrefixes,
        name: threads::IDLE.0,
        does: threads::IDLE.1,
    };

    /// The listed name of a culprit; `None` if no list has it.
    #[must_use]
    pub fn of(subject: &Subject) -> Option<KnownName> {
        let list = match subject.kind().name_of() {
            NameOf::Thread => match subject {
                Subject::Thread(task) => return of_thread(task),
                _ => return None,
            },
            NameOf::Work => NameList::Work,
            NameOf::Timer => NameList::Timers,
            NameOf::Softirq => NameList::Softirqs,
            NameOf::Call => NameList::Calls,
            NameOf::Interrupt => NameList::Vectors,
            NameOf::Fault => NameList::Faults,
            NameOf::Nmi => NameList::Nmis,
            NameOf::Itself => return None,
        };
        list.find(plain(&subject.name()))
    }
}

/// All listed names of such bearers, in the order of their lists. Of kernel threads, those of a list of beginnings end
/// with anything.
#[must_use]
pub fn known_names(of: NameOf) -> Vec<KnownName> {
    let lists: &[NameList] = match of {
        NameOf::Thread => &[
            NameList::Threads,
            NameList::ThreadPrefixes,
            NameList::Daemons,
        ],
        NameOf::Work => &[NameList::Work],
        NameOf::Timer => &[NameList::Timers],
        NameOf::Softirq => &[NameList::Softirqs],
        NameOf::Call => &[NameList::Calls],
        NameOf::Interrupt => &[NameList::Vectors],
        NameOf::Fault => &[NameList::Faults],
        NameOf::Nmi => &[NameList::Nmis],
        NameOf::Itself => &[],
    };
    let named = |list: &NameList| {
        let list = *list;
        let entries = list.table().iter();
        entries.map(move |(name, does)| KnownName { list, name, does })
    };
    lists.iter().flat_map(named).collect()
}

/// Identifies the idle task by its id and kernel threads by their flags, where those were read: a user can choose any
/// name.
fn of_thread(task: &Task) -> Option<KnownName> {
    if task.tid == Some(0) || task.class == Some(SchedClass::Idle) {
        return Some(KnownName::IDLE);
    }
    let name: &str = &task.comm;
    if name.starts_with(threads::IDLE.0) {
        return None;
    }
    let kernels = || NameList::Threads.find(name).or_else(|| beginning(name));
    NameList::Daemons
        .find(name)
        .or_else(|| if task.is_of_user() { None } else { kernels() })
}

/// Whether a listed kernel thread, or an idle task, has this name. A user's thread may imitate it.
#[must_use]
pub fn is_named_like_kernel_thread(name: &str) -> bool {
    let ours = |known: &KnownName| threads::OURS.contains(&known.name);
    name.starts_with(threads::WORKER)
        || NameList::Threads.find(name).is_some()
        || beginning(name).is_some_and(|known| !ours(&known))
}

fn beginning(name: &str) -> Option<KnownName> {
    NameList::ThreadPrefixes.first(|known| name.starts_with(known))
}

/// Whether this is exactly the name of a function or a vector: a kernel word that reveals nothing about the user.
pub(crate) fn is_function(name: &str) -> bool {
    NameList::FUNCTIONS
        .iter()
        .any(|list| list.find(name).is_some())
}

/// Whether this is exactly the name of an interrupt vector.
pub(crate) fn is_vector(name: &str) -> bool {
    NameList::Vectors.find(name).is_some()
}

/// Whether a thread's name is that of a kernel thread or a common daemon: the whole name, or a known beginning followed
/// only by the number of a CPU or a worker.
pub(crate) fn is_kernel_thread(name: &str) -> bool {
    let numbered = |rest: &str| {
        rest.len() <= 8
            && rest
                .bytes()
                .all(|b| b.is_ascii_digit() || b":uHI-".contains(&b))
    };
    let begins = |known: &str| name.strip_prefix(known).is_some_and(numbered);
    NameList::Threads
        .find(name)
        .or_else(|| NameList::Daemons.find(name))
        .is_some()
        || name.strip_prefix(threads::WORKER).is_some_and(numbered)
        || NameList::ThreadPrefixes.first(begins).is_some()
}

/// A function's name without the compiler's suffix: `.isra.0`, `.constprop.1`, `.cold`.
fn plain(name: &str) -> &str {
    match name.split_once('.') {
        Some((function, rest))
            if ["isra", "constprop", "part", "cold", "llvm"]
                .iter()
                .any(|s| rest.starts_with(s)) =>
        {
            function
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Name, Verdict, Work};

    #[test]
    fn a_culprit_goes_by_the_name_that_its_list_has() {
        let thread = |comm: &str| {
            Subject::Thread(Task {
                comm: comm.into(),
                ..Task::default()
            })
        };
        let timer = |function: &str| Subject::Timer {
            function: Some(function.into()),
            source: None,
        };
        let work = |function: Option<&str>| {
            Subject::Work(Work {
                function: function.map(Name::from),
                ..Work::default()
            })
        };
        for (subject, list, name) in [
            (
                timer("tick_nohz_handler"),
                NameList::Timers,
                "tick_nohz_handler",
            ),
            (
                timer("tick_nohz_handler.isra.0"),
                NameList::Timers,
                "tick_nohz_handler",
            ),
            (
                Subject::Timer {
                    function: None,
                    source: None,
                },
                NameList::Timers,
                "local_timer",
            ),
            (work(Some("vmstat_update")), NameList::Work, "vmstat_update"),
            (Subject::Call("ipi_mb".into()), NameList::Calls, "ipi_mb"),
            (
                Subject::Ipi("reschedule".into()),
                NameList::Calls,
                "reschedule",
            ),
            (Subject::Softirq(3), NameList::Softirqs, "NET_RX"),
            (
                Subject::Vector("error_apic".into()),
                NameList::Vectors,
                "error_apic",
            ),
            (
                Subject::Nmi("ghes_notify_nmi".into()),
                NameList::Nmis,
                "ghes_notify_nmi",
            ),
            (
                Subject::PageFault { user: true },
                NameList::Faults,
                "page_fault_user",
            ),
            (
                Subject::PageFault { user: false },
                NameList::Faults,
                "page_fault_kernel",
            ),
            (thread("ksmd"), NameList::Threads, "ksmd"),
            (
                thread("ksoftirqd/3"),
                NameList::ThreadPrefixes,
                "ksoftirqd/",
            ),
            (thread("irqbalance"), NameList::Daemons, "irqbalance"),
        ] {
            let found = KnownName::of(&subject).map(|known| (known.list, known.name));
            assert_eq!(found, Some((list, name)), "{subject:?}");
        }
        for unknown in [
            timer("nobodys_timer"),
            // Only the compiler's own words after a dot are a suffix.
            timer("tick_nohz_handler.acme"),
            work(None),
            thread("bash"),
            Subject::Vector("tick_nohz_handler".into()),
            Subject::verdict(Verdict::LateTimer),
        ] {
            assert_eq!(KnownName::of(&unknown), None, "{unknown:?}");
        }
    }

    #[test]
    fn who_takes_the_kernels_name_is_not_taken_for_it() {
        let of = |comm: &str, kernel: Option<bool>, tid: i32| {
            let task = Task {
                tid: Some(tid),
                comm: comm.into(),
                kernel,
                ..Task::default()
            };
            KnownName::of(&Subject::Thread(task)).map(|known| known.name)
        };
        assert_eq!(of("ksmd", Some(true), 9), Some("ksmd"));
        assert_eq!(of("ksmd", Some(false), 9), None);
        assert_eq!(of("migration/0", Some(false), 9), None);
        assert_eq!(of("tuned", Some(false), 9), Some("tuned"));
        assert_eq!(of("swapper/0", None, 9), None);
        assert_eq!(of("swapper/0", None, 0), Some(KnownName::IDLE.name));
    }

    #[test]
    fn no_name_is_twice_in_a_list_and_special_beginnings_come_first() {
        for list in NameList::ALL {
            let table = list.table();
            let mut names: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), table.len(), "{list:?}");
        }
        let beginnings = NameList::ThreadPrefixes.table();
        for (at, (name, _)) in beginnings.iter().enumerate() {
            assert_eq!(
                beginnings
                    .iter()
                    .position(|(known, _)| name.starts_with(known)),
                Some(at),
                "{name}"
            );
        }
    }

    #[test]
    fn phrases_are_short_parts_of_sentences() {
        for (name, phrase) in NameList::ALL.into_iter().flat_map(NameList::table) {
            assert!(
                phrase.len() <= 72 && !phrase.is_empty(),
                "{name}: {}",
                phrase.len()
            );
            assert!(!phrase.ends_with('.'), "{name}");
        }
    }

    #[test]
    fn what_a_redacted_run_keeps_is_in_a_list() {
        for name in [
            "ksmd",
            "tuned",
            "kworker/u8:2",
            "ksoftirqd/3",
            "migration/12",
        ] {
            assert!(is_kernel_thread(name), "{name}");
        }
        for name in [
            "ksoftirqd/12345678",
            "kworker/12345678",
            "napi/u-H:1",
            "rcu_exp",
        ] {
            assert!(is_kernel_thread(name), "{name}");
        }
        for name in [
            "bash",
            "ksoftirqd/secret",
            "kworker/u8:2-customer",
            "tuned2",
            "ksoftirqd/123456789",
            "kworker/123456789",
            "",
        ] {
            assert!(!is_kernel_thread(name), "{name}");
        }
        assert!(is_function("vmstat_update") && is_function("NET_RX") && !is_function("ksmd"));
        assert!(is_vector("error_apic") && !is_vector("vmstat_update"));
    }
}
