//! What ran instead of the victim, as data.

use super::{
    About, CulpritKind, Meanwhile, Quota, SubjectFields, Task, TimerSource, Verdict, Work,
};
use crate::{Name, softirq_name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What ran instead of the victim, with different data for each kind. Names are shared, so cloning is cheap. In JSON
/// and in tables it has the form of [`SubjectFields`].
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(into = "SubjectFields", from = "SubjectFields")]
pub enum Subject {
    /// Another thread.
    Thread(Task),
    /// A kernel worker's work item, or a worker whose item no record shows.
    Work(Work),
    /// A device's interrupt handler.
    Interrupt {
        /// Interrupt number, if recorded.
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
        /// The function that ran longest; `None` for the interrupt itself.
        function: Option<Name>,
        /// What ran it; `None` if unknown.
        source: Option<TimerSource>,
    },
    /// A function that another CPU called on this one.
    Call(Name),
    /// By vector: an interrupt from another CPU without a recorded function, or deferred interrupt work.
    Ipi(Name),
    /// A page fault of the victim, in user code or in the kernel.
    PageFault {
        /// Whether user code faulted.
        user: bool,
    },
    /// A non-maskable interrupt, by its handler.
    Nmi(Name),
    MachineCheck {
        /// The bank that reported it, if known.
        bank: Option<u32>,
    },
    /// Real-time throttling of the victim, which let this thread run.
    Throttle(Task),
    /// The CPU quota of a control group that the victim is in.
    Quota(Quota),
    /// Time that no particular culprit explains.
    Verdict(Verdict, About),
    /// In sums: further culprits of a kind beyond the row limit.
    Others(CulpritKind),
    /// Written by a newer version, or by an old one whose form no version knows any more.
    Unknown {
        /// The word of its kind.
        kind: Name,
        name: Name,
        detail: Name,
    },
}

/// The name of [`Subject::Others`].
pub(super) const OTHERS: &str = "(others)";
/// The name of a timer interrupt without a function.
const LOCAL_TIMER: &str = "local_timer";
/// The names of page faults.
pub(super) const FAULT_USER: &str = "page_fault_user";
pub(super) const FAULT_KERNEL: &str = "page_fault_kernel";
const MACHINE_CHECK: &str = "machine_check";
const THROTTLING: &str = "RT throttling";
const QUOTA: &str = "CPU quota";
/// A worker whose item and name are unknown.
const UNKNOWN_WORKER: &str = "kworker";
/// Prefix for softirqs without a kernel name, before the vector.
const UNNAMED_SOFTIRQ: &str = "softirq ";

impl Subject {
    /// A verdict without further facts.
    #[must_use]
    pub fn verdict(verdict: Verdict) -> Subject {
        Subject::Verdict(verdict, About::Nothing)
    }

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
            Subject::Quota(Quota { beside: None, .. }) => CulpritKind::Quota,
            Subject::Quota(_) => CulpritKind::QuotaBeside,
            Subject::Verdict(verdict, _) => verdict.kind(),
            Subject::Others(kind) => *kind,
            Subject::Unknown { kind, .. } => {
                CulpritKind::from_word(kind).unwrap_or(CulpritKind::Unknown)
            }
        }
    }

    /// The word of its kind, also for a kind of a newer version.
    #[must_use]
    pub fn kind_word(&self) -> &str {
        match self {
            Subject::Unknown { kind, .. } => kind,
            known => known.kind().as_str(),
        }
    }

    /// Its name: the thread's, the work's or timer's function, the handler, or the verdict's word.
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
            Subject::Quota(quota) => quota.beside.as_ref(),
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
            | Subject::Verdict(..)
            | Subject::Others(_)
            | Subject::Unknown { .. } => None,
        }
    }

    /// The CPUs that its thread may run on, if known.
    #[must_use]
    pub fn allowed(&self) -> Option<Name> {
        match self {
            Subject::Thread(task) => task.allowed.clone(),
            _ => None,
        }
    }

    /// Its form in a table of processes: threads other than the first one are shown as their process.
    #[must_use]
    pub fn of_process(&self) -> Cow<'_, Subject> {
        let threads = self.task().is_some_and(|task| task.process.is_some());
        match self {
            Subject::Thread(task) if threads => Cow::Owned(Subject::Thread(task.of_process())),
            Subject::Throttle(task) if threads => Cow::Owned(Subject::Throttle(task.of_process())),
            Subject::Quota(quota) if threads => Cow::Owned(Subject::Quota(Quota {
                beside: quota.beside.as_ref().map(Task::of_process),
                ..quota.clone()
            })),
            Subject::Verdict(verdict, About::Meanwhile(Meanwhile::Ran(task))) if threads => {
                let ran = About::Meanwhile(Meanwhile::Ran(task.of_process()));
                Cow::Owned(Subject::Verdict(*verdict, ran))
            }
            other => Cow::Borrowed(other),
        }
    }

    /// The verdict, if it is one.
    #[must_use]
    pub fn as_verdict(&self) -> Option<Verdict> {
        match self {
            Subject::Verdict(verdict, _) => Some(*verdict),
            _ => None,
        }
    }

    /// Keeps what two subjects with the same key share.
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
            // The key contains all facts of these kinds, so both are equal.
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
