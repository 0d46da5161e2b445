//! What ran instead of the victim, as data.

use super::{
    About, CulpritKind, Meanwhile, Quota, SubjectFields, Task, TimerSource, Verdict, Work,
};
use crate::{Name, softirq_name};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What ran instead of the victim: data of its own for each kind. Names are shared, so that it is cheap to
/// clone. In JSON and in tables it has the form of [`SubjectFields`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "SubjectFields", from = "SubjectFields")]
pub enum Subject {
    /// Another thread.
    Thread(Task),
    /// A kernel worker's work item, or a worker whose item was not seen.
    Work(Work),
    /// A device's interrupt handler.
    Interrupt {
        /// Interrupt number, where recorded.
        number: Option<u32>,
        /// The handler's registered name.
        action: Name,
    },
    /// An interrupt vector that is neither the timer's nor a call from another CPU.
    Vector(Name),
    /// A softirq, by its vector.
    Softirq(u32),
    /// A timer function, or the local timer interrupt itself.
    Timer {
        /// The function that ran longest; `None` of the interrupt itself.
        function: Option<Name>,
        /// What ran it; `None` where that was not looked at.
        source: Option<TimerSource>,
    },
    /// A function that another CPU called on this one.
    Call(Name),
    /// An interrupt from another CPU of which no function was seen, or deferred interrupt work: by its vector.
    Ipi(Name),
    /// A page fault of the victim, in user code or in the kernel.
    PageFault {
        /// Whether user code faulted.
        user: bool,
    },
    /// A non-maskable interrupt, by its handler.
    Nmi(Name),
    /// A machine check.
    MachineCheck {
        /// The bank that reported it, where known.
        bank: Option<u32>,
    },
    /// Real-time throttling of the victim, which let this thread run.
    Throttle(Task),
    /// The CPU quota of a control group that the victim is in.
    Quota(Quota),
    /// Time that nobody in particular can be blamed for.
    Verdict(Verdict, About),
    /// In sums: culprits of a kind beyond those that are told apart.
    Others(CulpritKind),
    /// What a newer version wrote and this one does not know, or an old one wrote and none knows any more.
    Unknown {
        /// The word for its kind.
        kind: Name,
        /// Its name.
        name: Name,
        /// What else was said of it.
        detail: Name,
    },
}

/// The name of [`Subject::Others`].
pub(super) const OTHERS: &str = "(others)";
/// The name of a timer interrupt that is not named by a function.
const LOCAL_TIMER: &str = "local_timer";
/// The names of page faults.
pub(super) const FAULT_USER: &str = "page_fault_user";
pub(super) const FAULT_KERNEL: &str = "page_fault_kernel";
const MACHINE_CHECK: &str = "machine_check";
const THROTTLING: &str = "RT throttling";
const QUOTA: &str = "CPU quota";
/// A worker of which neither item nor name is known.
const UNKNOWN_WORKER: &str = "kworker";
/// How softirqs that the kernel has no name for are called, before their vector.
const UNNAMED_SOFTIRQ: &str = "softirq ";

impl Subject {
    /// A verdict of which nothing else is known.
    #[must_use]
    pub fn verdict(verdict: Verdict) -> Subject {
        Subject::Verdict(verdict, About::Nothing)
    }

    /// What kind of thing.
    #[must_use]
    pub fn kind(&self) -> CulpritKind {
        match self {
            Subject::Thread(_) => CulpritKind::Thread,
            Subject::Work(_) => CulpritKind::Kworker,
            Subject::Interrupt { .. } | Subject::Vector(_) => CulpritKind::Irq,
            Subject::Softirq(_) => CulpritKind::Softirq,
            Subject::Timer { .. } => CulpritKind::Timer,
            Subject::Call(_) | Subject::Ipi(_) => CulpritKind::Ipi,
            Subject::PageFault { .. } => CulpritKind::PageFault,
            Subject::Nmi(_) => CulpritKind::Nmi,
            Subject::MachineCheck { .. } => CulpritKind::Mce,
            Subject::Throttle(_) => CulpritKind::RtThrottle,
            Subject::Quota(_) => CulpritKind::Quota,
            Subject::Verdict(verdict, _) => verdict.kind(),
            Subject::Others(kind) => *kind,
            Subject::Unknown { kind, .. } => {
                CulpritKind::from_word(kind).unwrap_or(CulpritKind::Unknown)
            }
        }
    }

    /// The word for its kind: that of a newer version where this one does not know the kind.
    #[must_use]
    pub fn kind_word(&self) -> &str {
        match self {
            Subject::Unknown { kind, .. } => kind,
            known => known.kind().as_str(),
        }
    }

    /// Its name: the thread's, the work's or timer's function, the handler, the verdict's word.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        match self {
            Subject::Thread(task) => Cow::Borrowed(&*task.comm),
            Subject::Work(work) => {
                let worker = || {
                    work.worker
                        .as_ref()
                        .and_then(|worker| worker.comm.as_deref())
                };
                work.function
                    .as_deref()
                    .or_else(worker)
                    .unwrap_or(UNKNOWN_WORKER)
                    .into()
            }
            Subject::Interrupt { action: name, .. }
            | Subject::Vector(name)
            | Subject::Call(name)
            | Subject::Ipi(name)
            | Subject::Nmi(name)
            | Subject::Unknown { name, .. } => Cow::Borrowed(&**name),
            Subject::Softirq(vec) => match softirq_name(*vec) {
                Some(name) => name.into(),
                None => format!("{UNNAMED_SOFTIRQ}{vec}").into(),
            },
            Subject::Timer { function, .. } => function.as_deref().unwrap_or(LOCAL_TIMER).into(),
            Subject::PageFault { user: true } => FAULT_USER.into(),
            Subject::PageFault { user: false } => FAULT_KERNEL.into(),
            Subject::MachineCheck { .. } => MACHINE_CHECK.into(),
            Subject::Throttle(_) => THROTTLING.into(),
            Subject::Quota(_) => QUOTA.into(),
            Subject::Verdict(verdict, _) => verdict.as_str().into(),
            Subject::Others(_) => OTHERS.into(),
        }
    }

    /// The thread that it is, or that ran meanwhile.
    #[must_use]
    pub fn task(&self) -> Option<&Task> {
        match self {
            Subject::Thread(task)
            | Subject::Throttle(task)
            | Subject::Verdict(_, About::Meanwhile(Meanwhile::Ran(task))) => Some(task),
            Subject::Work(_)
            | Subject::Interrupt { .. }
            | Subject::Vector(_)
            | Subject::Softirq(_)
            | Subject::Timer { .. }
            | Subject::Call(_)
            | Subject::Ipi(_)
            | Subject::PageFault { .. }
            | Subject::Nmi(_)
            | Subject::MachineCheck { .. }
            | Subject::Quota(_)
            | Subject::Verdict(..)
            | Subject::Others(_)
            | Subject::Unknown { .. } => None,
        }
    }

    /// As a row of processes has it: a thread that is not its process's first goes by that.
    #[must_use]
    pub fn of_process(&self) -> Cow<'_, Subject> {
        let threads = self.task().is_some_and(|task| task.process.is_some());
        match self {
            Subject::Thread(task) if threads => Cow::Owned(Subject::Thread(task.of_process())),
            Subject::Throttle(task) if threads => Cow::Owned(Subject::Throttle(task.of_process())),
            Subject::Verdict(verdict, About::Meanwhile(Meanwhile::Ran(task))) if threads => {
                let ran = About::Meanwhile(Meanwhile::Ran(task.of_process()));
                Cow::Owned(Subject::Verdict(*verdict, ran))
            }
            other => Cow::Borrowed(other),
        }
    }

    /// The verdict, where it is one.
    #[must_use]
    pub fn as_verdict(&self) -> Option<Verdict> {
        match self {
            Subject::Verdict(verdict, _) => Some(*verdict),
            _ => None,
        }
    }

    /// Keeps what both have in common, of two subjects with the same key.
    pub fn meet(&mut self, other: &Subject) {
        match self {
            Subject::Thread(own) => {
                if let Subject::Thread(other) = other {
                    own.meet(other);
                }
            }
            Subject::Throttle(own) => {
                if let Subject::Throttle(other) = other {
                    own.meet(other);
                }
            }
            Subject::Work(own) => {
                if let Subject::Work(other) = other {
                    own.meet(other);
                }
            }
            Subject::Quota(own) => {
                if let Subject::Quota(other) = other {
                    own.meet(other);
                }
            }
            Subject::Verdict(_, own) => {
                if let Subject::Verdict(_, other) = other {
                    own.meet(other);
                }
            }
            Subject::MachineCheck { bank } => {
                if let Subject::MachineCheck { bank: other } = other {
                    *bank = bank.filter(|bank| *other == Some(*bank));
                }
            }
            // The key has all that is known of these, so that both are the same.
            Subject::Interrupt { .. }
            | Subject::Vector(_)
            | Subject::Softirq(_)
            | Subject::Timer { .. }
            | Subject::Call(_)
            | Subject::Ipi(_)
            | Subject::PageFault { .. }
            | Subject::Nmi(_)
            | Subject::Others(_)
            | Subject::Unknown { .. } => {}
        }
    }
}
