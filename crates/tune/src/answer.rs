//! Which culprits a knob answers.

use crate::glob;
use jitterscope_model::{CulpritKind, SchedClass, Subject, Task, Verdict};
use serde::Serialize;

/// What a knob does to a culprit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It goes away.
    Removes,
    /// There is less of it.
    Lessens,
    /// It may be the cause: nothing that was recorded tells.
    Perhaps,
}

/// Workers, by whether their pool is bound to one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// It is.
    Bound,
    /// It is not: they keep to the CPUs of a mask.
    Unbound,
    /// No record tells, or some were bound and others not.
    Unknown,
}

/// Culprits of one sort. Lists of texts are of names with `*`.
#[derive(Clone, Copy, Debug)]
pub enum CulpritPattern {
    /// Threads, by name.
    Threads(&'static [&'static str]),
    /// Work items, by function; workers whose item was not seen, by their own name.
    Work(&'static [&'static str]),
    /// Of these, those that such workers ran.
    WorkBy(Workers, &'static [&'static str]),
    /// Interrupts of devices, by handler.
    Devices(&'static [&'static str]),
    /// Timer functions, and the timer interrupt itself (`local_timer`).
    Timers(&'static [&'static str]),
    /// Softirqs, by the kernel's name.
    Softirqs(&'static [&'static str]),
    /// Functions that another CPU calls on this one, and interrupts from others by their vector.
    Calls(&'static [&'static str]),
    /// Non-maskable interrupts, by handler.
    Nmis(&'static [&'static str]),
    /// Page faults of the victim.
    PageFaults,
    /// Machine checks.
    MachineChecks,
    /// Real-time throttling.
    Throttling,
    /// CPU quotas of control groups.
    Quotas,
    /// These verdicts.
    Verdicts(&'static [Verdict]),
    /// Every verdict of this kind.
    VerdictsOf(CulpritKind),
}

impl CulpritPattern {
    /// Whether a subject is one of them.
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

    /// Their kind; of verdicts that of the first.
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

    /// Their names, with `*` for anything.
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

    /// Which workers ran them, where that matters.
    #[must_use]
    pub fn workers(&self) -> Option<Workers> {
        match self {
            CulpritPattern::WorkBy(workers, _) => Some(*workers),
            _ => None,
        }
    }
}

/// Names in the catalogue that are those of programs; all others but `*` are of the kernel's own threads.
const PROGRAMS: [&str; 2] = ["irqbalance", "CPU */KVM"];
/// The idle task, which is known by its id.
const IDLE: &str = "swapper/*";

/// Whether a thread can be what a name of the catalogue means: a thread may call itself anything.
fn may_be(task: &Task, glob: &str) -> bool {
    let idle = task.tid == Some(0) || task.class == Some(SchedClass::Idle);
    match glob {
        IDLE => idle || (task.tid.is_none() && task.class.is_none()),
        _ => !task.is_of_user() || glob == "*" || PROGRAMS.contains(&glob),
    }
}

/// Culprits that a knob answers.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// These,
    pub culprits: CulpritPattern,
    /// but none of these names.
    pub except: [&'static [&'static str]; 2],
    /// What becomes of them.
    pub effect: Effect,
}

impl Answer {
    const fn of(culprits: CulpritPattern, effect: Effect) -> Answer {
        Answer {
            culprits,
            except: [&[], &[]],
            effect,
        }
    }

    /// Culprits that go away.
    #[must_use]
    pub const fn removes(culprits: CulpritPattern) -> Answer {
        Answer::of(culprits, Effect::Removes)
    }

    /// Culprits of which there will be less.
    #[must_use]
    pub const fn lessens(culprits: CulpritPattern) -> Answer {
        Answer::of(culprits, Effect::Lessens)
    }

    /// Culprits that it may or may not be the cause of.
    #[must_use]
    pub const fn perhaps(culprits: CulpritPattern) -> Answer {
        Answer::of(culprits, Effect::Perhaps)
    }

    /// The same, but not these; two lists at most.
    #[must_use]
    pub const fn but_not(mut self, except: &'static [&'static str]) -> Answer {
        if self.except[0].is_empty() {
            self.except[0] = except;
        } else {
            self.except[1] = except;
        }
        self
    }

    /// Whether it answers this culprit.
    #[must_use]
    pub fn matches(&self, subject: &Subject) -> bool {
        let excepted = || {
            let mut names = self.except.iter().flat_map(|list| list.iter());
            names.any(|glob| match subject {
                Subject::Thread(task) => may_be(task, glob) && glob::matches(glob, &task.comm),
                _ => glob::matches(glob, &subject.name()),
            })
        };
        self.culprits.matches(subject) && !excepted()
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
        // A thread may bear any name.
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
        let stopper = Answer::lessens(CulpritPattern::Threads(&["migration/*"]));
        assert!(stopper.matches(&thread("migration/1")) && !stopper.matches(&user("migration/1")));
        let idle = Answer::lessens(CulpritPattern::Threads(&["swapper/*"]));
        assert!(idle.matches(&thread("swapper/1")) && !idle.matches(&user("swapper/1")));
        // What keeps threads off a CPU keeps this one off.
        let kept_off =
            Answer::removes(CulpritPattern::Threads(&["*"])).but_not(&["migration/*", "swapper/*"]);
        assert!(
            kept_off.matches(&user("migration/1")) && !kept_off.matches(&thread("migration/1"))
        );
        assert!(kept_off.matches(&user("swapper/1")));
    }

    #[test]
    fn the_idle_task_is_known_by_its_id_or_class_and_by_its_name_where_nothing_else_is() {
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
        assert!(
            answer.matches(&of(Some("wb_workfn"))) && !answer.matches(&of(Some("vmstat_update")))
        );
    }
}
