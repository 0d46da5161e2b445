//! Which culprits a knob answers.

use crate::glob;
use jitterscope_model::{CulpritKind, Subject, Verdict};
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

/// Culprits of one sort. Lists of texts are of names with `*`.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// Threads, by name.
    Threads(&'static [&'static str]),
    /// Work items, by function; workers whose item was not seen, by their own name.
    Work(&'static [&'static str]),
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
    /// These verdicts.
    Verdicts(&'static [Verdict]),
    /// Every verdict of this kind.
    VerdictsOf(CulpritKind),
}

impl Target {
    /// Whether a subject is one of them.
    #[must_use]
    pub fn matches(&self, subject: &Subject) -> bool {
        let named = |globs: &[&str]| globs.iter().any(|glob| glob::matches(glob, &subject.name()));
        match (self, subject) {
            (Target::Threads(globs), Subject::Thread(_))
            | (Target::Work(globs), Subject::Work(_))
            | (Target::Devices(globs), Subject::Interrupt { .. })
            | (Target::Timers(globs), Subject::Timer { .. })
            | (Target::Softirqs(globs), Subject::Softirq(_))
            | (Target::Calls(globs), Subject::Call(_) | Subject::Ipi(_))
            | (Target::Nmis(globs), Subject::Nmi(_)) => named(globs),
            (Target::PageFaults, Subject::PageFault { .. })
            | (Target::MachineChecks, Subject::MachineCheck { .. })
            | (Target::Throttling, Subject::Throttle(_)) => true,
            (Target::Verdicts(verdicts), Subject::Verdict(verdict, _)) => verdicts.contains(verdict),
            (Target::VerdictsOf(kind), Subject::Verdict(verdict, _)) => verdict.kind() == *kind,
            _ => false,
        }
    }

    /// Their kind and their names, for documentation.
    #[must_use]
    pub fn describe(&self) -> String {
        let (kind, globs) = match self {
            Target::Threads(globs) => (CulpritKind::Thread, *globs),
            Target::Work(globs) => (CulpritKind::Kworker, *globs),
            Target::Devices(globs) => (CulpritKind::Irq, *globs),
            Target::Timers(globs) => (CulpritKind::Timer, *globs),
            Target::Softirqs(globs) => (CulpritKind::Softirq, *globs),
            Target::Calls(globs) => (CulpritKind::Ipi, *globs),
            Target::Nmis(globs) => (CulpritKind::Nmi, *globs),
            Target::PageFaults => (CulpritKind::PageFault, &["*"][..]),
            Target::MachineChecks => (CulpritKind::Mce, &["*"][..]),
            Target::Throttling => (CulpritKind::RtThrottle, &["*"][..]),
            Target::VerdictsOf(kind) => (*kind, &["*"][..]),
            Target::Verdicts(verdicts) => {
                let kind = verdicts.first().map_or(CulpritKind::Unresolved, |verdict| verdict.kind());
                let words: Vec<String> =
                    verdicts.iter().map(|verdict| format!("`{}`", verdict.as_str())).collect();
                return format!("{kind} {}", words.join(", "));
            }
        };
        let names: Vec<String> = globs.iter().map(|glob| format!("`{glob}`")).collect();
        format!("{kind} {}", names.join(", "))
    }
}

/// Culprits that a knob answers.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// These,
    pub target: Target,
    /// but none of these names.
    pub except: [&'static [&'static str]; 2],
    /// What becomes of them.
    pub effect: Effect,
}

impl Answer {
    const fn of(target: Target, effect: Effect) -> Answer {
        Answer { target, except: [&[], &[]], effect }
    }

    /// Culprits that go away.
    #[must_use]
    pub const fn removes(target: Target) -> Answer {
        Answer::of(target, Effect::Removes)
    }

    /// Culprits of which there will be less.
    #[must_use]
    pub const fn lessens(target: Target) -> Answer {
        Answer::of(target, Effect::Lessens)
    }

    /// Culprits that it may or may not be the cause of.
    #[must_use]
    pub const fn perhaps(target: Target) -> Answer {
        Answer::of(target, Effect::Perhaps)
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
            names.any(|glob| glob::matches(glob, &subject.name()))
        };
        self.target.matches(subject) && !excepted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{About, Task, Work, Worker};

    fn thread(comm: &str) -> Subject {
        Subject::Thread(Task { comm: comm.into(), ..Task::default() })
    }

    #[test]
    fn a_target_is_of_its_sort_only_whatever_the_names() {
        let idle = Target::Verdicts(&[Verdict::IdleExit]);
        assert!(idle.matches(&Subject::Verdict(Verdict::IdleExit, About::IdleState(3))));
        // A thread may bear any name.
        assert!(!idle.matches(&thread("idle exit")));
        assert!(!Target::Threads(&["*"]).matches(&Subject::verdict(Verdict::IdleExit)));
        assert!(!Target::Devices(&["*"]).matches(&Subject::Vector("thermal_apic".into())));
        assert!(Target::VerdictsOf(CulpritKind::Hypervisor).matches(&Subject::verdict(Verdict::CpuTaken)));
        assert!(!Target::VerdictsOf(CulpritKind::Hypervisor).matches(&Subject::verdict(Verdict::Smi)));
    }

    #[test]
    fn work_is_matched_by_function_or_by_a_worker_of_no_item() {
        let worker = Worker { tid: Some(1), comm: Some("kworker/u4:1".into()), class: None };
        let of = |function: Option<&str>| {
            Subject::Work(Work {
                function: function.map(Into::into),
                workqueue: None,
                worker: Some(worker.clone()),
            })
        };
        let unbound = Target::Work(&["kworker/u*"]);
        assert!(unbound.matches(&of(None)) && !unbound.matches(&of(Some("vmstat_update"))));
        let answer = Answer::lessens(Target::Work(&["*"])).but_not(&["vmstat_update"]);
        assert!(answer.matches(&of(Some("wb_workfn"))) && !answer.matches(&of(Some("vmstat_update"))));
    }
}
