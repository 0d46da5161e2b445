//! Who was to blame.

use crate::{CpuId, ExecutionContext, Name};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What kind of thing ran instead of the victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CulpritKind {
    /// Another thread; its name is the thread's.
    Thread,
    /// A kernel worker; its name is the work function.
    Kworker,
    /// A device interrupt; its name is the handler's.
    Irq,
    /// The local timer interrupt; its name is the timer function.
    Timer,
    /// A softirq; its name is the vector's.
    Softirq,
    /// A call or a reschedule from another CPU; its name is the function called.
    Ipi,
    /// A page fault of the victim.
    PageFault,
    /// A non-maskable interrupt; its name is the handler's.
    Nmi,
    /// A machine check.
    Mce,
    /// The scheduler's real-time throttling of the victim.
    RtThrottle,
    /// The cost of switching contexts, up to the measured entry and exit cost.
    Switch,
    /// The hypervisor took the CPU, or was late to deliver an interrupt.
    Hypervisor,
    /// Firmware took the CPU (a system management interrupt).
    Firmware,
    /// Nothing that was recorded explains it.
    Unresolved,
    /// Trace data was lost nearby: no verdict.
    Loss,
}

impl CulpritKind {
    /// All kinds, in the order of the schema.
    pub const ALL: [CulpritKind; 15] = [
        CulpritKind::Thread,
        CulpritKind::Kworker,
        CulpritKind::Irq,
        CulpritKind::Timer,
        CulpritKind::Softirq,
        CulpritKind::Ipi,
        CulpritKind::PageFault,
        CulpritKind::Nmi,
        CulpritKind::Mce,
        CulpritKind::RtThrottle,
        CulpritKind::Switch,
        CulpritKind::Hypervisor,
        CulpritKind::Firmware,
        CulpritKind::Unresolved,
        CulpritKind::Loss,
    ];

    /// Its name in stored runs and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            CulpritKind::Thread => "thread",
            CulpritKind::Kworker => "kworker",
            CulpritKind::Irq => "irq",
            CulpritKind::Timer => "timer",
            CulpritKind::Softirq => "softirq",
            CulpritKind::Ipi => "ipi",
            CulpritKind::PageFault => "page_fault",
            CulpritKind::Nmi => "nmi",
            CulpritKind::Mce => "mce",
            CulpritKind::RtThrottle => "rt_throttle",
            CulpritKind::Switch => "switch",
            CulpritKind::Hypervisor => "hypervisor",
            CulpritKind::Firmware => "firmware",
            CulpritKind::Unresolved => "unresolved",
            CulpritKind::Loss => "loss",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<CulpritKind> {
        CulpritKind::ALL.into_iter().find(|k| k.as_str() == name)
    }

    /// Whether time under this kind counts as explained: kernel activity that was seen.
    #[must_use]
    pub fn is_explained(self) -> bool {
        !matches!(
            self,
            CulpritKind::Hypervisor | CulpritKind::Firmware | CulpritKind::Unresolved | CulpritKind::Loss
        )
    }
}

impl fmt::Display for CulpritKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Who set a culprit going from elsewhere: the waker of a thread, the sender of an IPI, the task
/// that queued the work.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sender {
    /// Whether it was the thread itself, or what ran on top of it.
    #[serde(default)]
    pub context: ExecutionContext,
    /// Its thread's name; `None` when the thread was gone before it could be asked, and where `tid` is 0.
    pub comm: Option<Name>,
    /// Its thread id; 0 of interrupts and of softirqs with which the thread beneath had nothing to do.
    pub tid: i32,
    /// The CPU that it ran on.
    pub cpu: CpuId,
    /// The kernel function through which it was sent, where recorded.
    pub via: Option<Name>,
}

impl Sender {
    /// Whether a thread did it, or may have had a part in it.
    #[must_use]
    pub fn involves_thread(&self) -> bool {
        self.context == ExecutionContext::Thread
            || (self.context.may_involve_thread() && (self.comm.is_some() || self.tid != 0))
    }

    /// Who did it, in a sentence: `cron`, `a softirq on top of udp-send`, `an interrupt`.
    #[must_use]
    pub fn who(&self) -> String {
        let thread = self.comm.as_deref().unwrap_or("a thread that has ended");
        self.context.who(self.involves_thread().then_some(thread))
    }
}

/// What ran instead of the victim. Two parts of one run have the same culprit when all but the
/// sender are equal.
///
/// For unexplained kinds `name` is the class of the verdict, for example `late interrupt` or
/// `no kernel event`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Culprit {
    /// What kind of thing.
    pub kind: CulpritKind,
    /// Its name, as [`CulpritKind`] says.
    pub name: Name,
    /// What else identifies it: `pid 123, FIFO 49`, `irq 25`, the timer functions that it ran.
    pub detail: Name,
    /// Who set it going, where known.
    pub sender: Option<Sender>,
}
