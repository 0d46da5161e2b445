//! The culprits that a knob answers.

use crate::glob;
use jitterscope_model::{CpuSet, CulpritKind, SchedClass, Subject, Task, Verdict};
use schemars::JsonSchema;
use serde::Serialize;

/// The effect of a knob on a culprit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    Removes,
    /// The culprit takes less time.
    Lessens,
    /// The knob may be the cause; nothing recorded shows it.
    Perhaps,
}

/// Workers, by whether their pool is bound to one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    Bound,
    /// Not bound: they stay on the CPUs of a mask.
    Unbound,
    /// No record shows it, or some were bound and others not.
    Unknown,
}

/// Culprits of one sort. Lists of texts are name patterns with `*`.
#[derive(Clone, Copy, Debug)]
pub enum CulpritPattern {
    Threads(&'static [&'static str]),
    /// Work items, by function; workers whose item was not seen, by their own name.
    Work(&'static [&'static str]),
    /// Work items that such workers ran, by function.
    WorkBy(Workers, &'static [&'static str]),
    /// Device interrupts, by handler.
    Devices(&'static [&'static str]),
    /// Timer functions, and the timer interrupt itself (`local_timer`).
    Timers(&'static [&'static str]),
    /// Softirqs, by the kernel's name.
    Softirqs(&'static [&'static str]),
    /// Functions called from another CPU, and inter-processor interrupts by vector.
    Calls(&'static [&'static str]),
    /// Non-maskable interrupts, by handler.
    Nmis(&'static [&'static str]),
    PageFaults,
    MachineChecks,
    Throttling,
    Quotas,
    Verdicts(&'static [Verdict]),
    VerdictsOf(CulpritKind),
}

impl CulpritPattern {
    #[must_use]
    pub fn matches(&self, subject: &Subject) -> bool {
        let named = |globs: &[&str]| {
            globs
                .iter()
                .any(|glob| glob::matches(glob, &subject.name()))
        };
        match (self, subject) {
            (CulpritPattern::Threads(globs), Subject::Thread(task)) => globs
                .iter()
                .any(|glob| may_be(task, glob) && glob::matches(glob, &task.comm)),
            (CulpritPattern::WorkBy(workers, globs), Subject::Work(work)) => {
                let by = match work.is_unbound() {
                    Some(true) => Workers::Unbound,
                    Some(false) => Workers::Bound,
                    None => Workers::Unknown,
                };
                by == *workers && named(globs)
            }
            (CulpritPattern::Work(globs), Subject::Work(_))
            | (CulpritPattern::Devices(globs), Subject::Interrupt { .. })
            | (CulpritPattern::Timers(globs), Subject::Timer { .. })
            | (CulpritPattern::Softirqs(globs), Subject::Softirq(_))
            | (CulpritPattern::Calls(globs), Subject::Call(_) | Subject::Ipi(_))
            | (CulpritPattern::Nmis(globs), Subject::Nmi(_)) => named(globs),
            (CulpritPattern::PageFaults, Subject::PageFault { .. })
            | (CulpritPattern::MachineChecks, Subject::MachineCheck { .. })
            | (CulpritPattern::Throttling, Subject::Throttle(_))
            | (CulpritPattern::Quotas, Subject::Quota(_)) => true,
            (CulpritPattern::Verdicts(verdicts), Subject::Verdict(verdict, _)) => {
                verdicts.contains(verdict)
            }
            (CulpritPattern::VerdictsOf(kind), Subject::Verdict(verdict, _)) => {
                verdict.kind() == *kind
            }
            _ => false,
        }
    }

    /// The kind of the culprits; for several verdicts, the kind of the first.
    #[must_use]
    pub fn kind(&self) -> CulpritKind {
        match self {
            CulpritPattern::Threads(_) => CulpritKind::Thread,
            CulpritPattern::Work(_) | CulpritPattern::WorkBy(..) => CulpritKind::Kworker,
            CulpritPattern::Devices(_) => CulpritKind::Irq,
            CulpritPattern::Timers(_) => CulpritKind::Timer,
            CulpritPattern::Softirqs(_) => CulpritKind::Softirq,
            CulpritPattern::Calls(_) => CulpritKind::Ipi,
            CulpritPattern::Nmis(_) => CulpritKind::Nmi,
            CulpritPattern::PageFaults => CulpritKind::PageFault,
            CulpritPattern::MachineChecks => CulpritKind::Mce,
            CulpritPattern::Throttling => CulpritKind::RtThrottle,
            CulpritPattern::Quotas => CulpritKind::Quota,
            CulpritPattern::VerdictsOf(kind) => *kind,
            CulpritPattern::Verdicts(verdicts) => verdicts
                .first()
                .map_or(CulpritKind::Unresolved, |verdict| verdict.kind()),
        }
    }

    /// The names of the culprits, with `*` for any text.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        match self {
            CulpritPattern::Threads(globs)
            | CulpritPattern::Work(globs)
            | CulpritPattern::WorkBy(_, globs)
            | CulpritPattern::Devices(globs)
            | CulpritPattern::Timers(globs)
            | CulpritPattern::Softirqs(globs)
            | CulpritPattern::Calls(globs)
            | CulpritPattern::Nmis(globs) => globs.to_vec(),
            CulpritPattern::Verdicts(verdicts) => {
                verdicts.iter().map(|verdict| verdict.as_str()).collect()
            }
            CulpritPattern::PageFaults
            | CulpritPattern::MachineChecks
            | CulpritPattern::Throttling
            | CulpritPattern::Quotas
            | CulpritPattern::VerdictsOf(_) => vec!["*"],
        }
    }

    /// Which workers ran them, if that matters.
    #[must_use]
    pub fn workers(&self) -> Option<Workers> {
        match self {
            CulpritPattern::WorkBy(workers, _) => Some(*workers),
            _ => None,
        }
    }
}

/// Names in the catalogue that belong to programs; all others except `*` belong to kernel threads.
const PROGRAMS: [&str; 2] = ["irqbalance", "CPU */KVM"];
/// The idle task, which is recognised by its id.
const IDLE: &str = "swapper/*";

/// Whether a thread can be the one that a name in the catalogue means: any thread may use any name.
fn may_be(task: &Task, glob: &str) -> bool {
    let idle = task.tid == Some(0) || task.class == Some(SchedClass::Idle);
    match glob {
        IDLE => idle || (task.tid.is_none() && task.class.is_none()),
        _ => !task.is_of_user() || glob == "*" || PROGRAMS.contains(&glob),
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub culprits: CulpritPattern,
    /// Names that are excluded.
    pub except: [&'static [&'static str]; 2],
    /// The selected threads, by the CPUs that they may run on.
    pub confined: Confined,
    /// The effect on them.
    pub effect: Effect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confined {
    Either,
    /// Threads that may also run on other CPUs: those confined to these CPUs stay.
    No,
    /// Program threads confined to these CPUs.
    Yes,
}

impl Answer {
    const fn of(culprits: CulpritPattern, effect: Effect) -> Answer {
        Answer {
            culprits,
            except: [&[], &[]],
            confined: Confined::Either,
            effect,
        }
    }

    /// Restricts threads to those that may also run elsewhere.
    #[must_use]
    pub const fn unless_confined(mut self) -> Answer {
        self.confined = Confined::No;
        self
    }

    /// Restricts threads to program threads that may not run elsewhere.
    #[must_use]
    pub const fn if_confined(mut self) -> Answer {
        self.confined = Confined::Yes;
        self
    }

    /// Culprits that the knob removes.
    #[must_use]
    pub const fn removes(culprits: CulpritPattern) -> Answer {
        Answer::of(culprits, Effect::Removes)
    }

    /// Culprits that the knob lessens.
    #[must_use]
    pub const fn lessens(culprits: CulpritPattern) -> Answer {
        Answer::of(culprits, Effect::Lessens)
    }

    /// Culprits that the knob may or may not cause.
    #[must_use]
    pub const fn perhaps(culprits: CulpritPattern) -> Answer {
        Answer::of(culprits, Effect::Perhaps)
    }

    /// Excludes these names; two lists at most.
    #[must_use]
    pub const fn but_not(mut self, except: &'static [&'static str]) -> Answer {
        if self.except[0].is_empty() {
            self.except[0] = except;
        } else {
            self.except[1] = except;
        }
        self
    }

    /// Whether it answers this culprit on the CPUs to isolate.
    #[must_use]
    pub fn matches(&self, subject: &Subject, cpus: &CpuSet) -> bool {
        let confined = match subject {
            Subject::Thread(task) => task.is_pinned_within(cpus).then_some(task),
            _ => None,
        };
        let confined = match (self.confined, confined) {
            (Confined::Either, _) | (Confined::No, None) => true,
            (Confined::No, Some(_)) | (Confined::Yes, None) => false,
            (Confined::Yes, Some(task)) => task.is_of_user(),
        };
        let excepted = || {
            let mut names = self.except.iter().flat_map(|list| list.iter());
            names.any(|glob| match subject {
                Subject::Thread(task) => may_be(task, glob) && glob::matches(glob, &task.comm),
                _ => glob::matches(glob, &subject.name()),
            })
        };
        confined && self.culprits.matches(subject) && !excepted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{About, Work, Worker};

    fn thread(comm: &str) -> Subject {
        Subject::Thread(Task {
            comm: comm.into(),
            ..Task::default()
        })
    }

    #[test]
    fn a_target_is_of_its_sort_only_whatever_the_names() {
        let idle = CulpritPattern::Verdicts(&[Verdict::IdleExit]);
        assert!(idle.matches(&Subject::Verdict(Verdict::IdleExit, About::IdleState(3))));
        // A thread may have any name.
        assert!(!idle.matches(&thread("idle exit")));
        assert!(!CulpritPattern::Threads(&["*"]).matches(&Subject::verdict(Verdict::IdleExit)));
        assert!(!CulpritPattern::Devices(&["*"]).matches(&Subject::Vector("thermal_apic".into())));
        assert!(
            CulpritPattern::VerdictsOf(CulpritKind::Hypervisor)
                .matches(&Subject::verdict(Verdict::CpuTaken))
        );
        assert!(
            !CulpritPattern::VerdictsOf(CulpritKind::Hypervisor)
                .matches(&Subject::verdict(Verdict::Smi))
        );
    }

    #[test]
    fn a_thread_that_calls_itself_after_one_of_the_kernels_is_none() {
        let user = |comm: &str| {
            let task = Task {
                tid: Some(7),
                comm: comm.into(),
                kernel: Some(false),
                ..Task::default()
            };
            Subject::Thread(Task {
                class: Some(SchedClass::RealTime(5)),
                ..task
            })
        };
        let none = CpuSet::new();
        let matches = |answer: &Answer, subject: &Subject| answer.matches(subject, &none);
        let stopper = Answer::lessens(CulpritPattern::Threads(&["migration/*"]));
        assert!(matches(&stopper, &thread("migration/1")));
        assert!(!matches(&stopper, &user("migration/1")));
        let idle = Answer::lessens(CulpritPattern::Threads(&["swapper/*"]));
        assert!(matches(&idle, &thread("swapper/1")) && !matches(&idle, &user("swapper/1")));
        // A knob that keeps threads off a CPU also keeps this one off.
        let kept_off =
            Answer::removes(CulpritPattern::Threads(&["*"])).but_not(&["migration/*", "swapper/*"]);
        assert!(matches(&kept_off, &user("migration/1")));
        assert!(!matches(&kept_off, &thread("migration/1")));
        assert!(matches(&kept_off, &user("swapper/1")));
    }

    #[test]
    fn a_thread_that_may_run_nowhere_else_is_not_moved_away() {
        let of = |allowed: Option<&str>, kernel| {
            Subject::Thread(Task {
                comm: "hog".into(),
                kernel,
                allowed: allowed.map(Into::into),
                ..Task::default()
            })
        };
        let threads = CulpritPattern::Threads(&["*"]);
        let moved = Answer::removes(threads).unless_confined();
        let pinned = Answer::removes(threads).if_confined();
        let cpus = "1-2".parse().unwrap();
        for (subject, expected) in [
            (of(Some("1"), Some(false)), (false, true)),
            (of(Some("1-2"), Some(false)), (false, true)),
            (of(Some("0-2"), Some(false)), (true, false)),
            // Such a kernel thread cannot be moved either.
            (of(Some("2"), Some(true)), (false, false)),
            (of(None, None), (true, false)),
        ] {
            let found = (
                moved.matches(&subject, &cpus),
                pinned.matches(&subject, &cpus),
            );
            assert_eq!(found, expected, "{subject:?}");
        }
        assert!(Answer::removes(threads).matches(&of(Some("1"), Some(false)), &cpus));
    }

    #[test]
    fn the_idle_task_is_known_by_id_class_or_else_name() {
        let idle = CulpritPattern::Threads(&[IDLE]);
        let fair = || Some(SchedClass::Fair(None));
        for (tid, class, is_idle) in [
            (Some(0), None, true),
            (Some(0), fair(), true),
            (None, Some(SchedClass::Idle), true),
            (Some(7), Some(SchedClass::Idle), true),
            (None, None, true),
            (Some(7), None, false),
            (None, fair(), false),
            (Some(7), fair(), false),
        ] {
            let task = Task {
                comm: "swapper/1".into(),
                tid,
                class,
                ..Task::default()
            };
            assert_eq!(
                idle.matches(&Subject::Thread(task.clone())),
                is_idle,
                "{task:?}"
            );
        }
    }

    #[test]
    fn work_is_matched_by_function_or_by_a_worker_of_no_item() {
        let worker = Worker {
            tid: Some(1),
            comm: Some("kworker/u4:1".into()),
            class: None,
        };
        let of = |function: Option<&str>| {
            let function = function.map(Into::into);
            Subject::Work(Work {
                function,
                worker: Some(worker.clone()),
                ..Work::default()
            })
        };
        let unbound = CulpritPattern::Work(&["kworker/u*"]);
        assert!(unbound.matches(&of(None)) && !unbound.matches(&of(Some("vmstat_update"))));
        let answer = Answer::lessens(CulpritPattern::Work(&["*"])).but_not(&["vmstat_update"]);
        let answers = |name| answer.matches(&of(Some(name)), &CpuSet::new());
        assert!(answers("wb_workfn") && !answers("vmstat_update"));
    }
}
