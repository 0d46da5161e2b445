//! The kinds of culprit.

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
    /// The scheduler's real-time throttling of the victim, or its deadline budget.
    RtThrottle,
    /// The CPU quota of a control group that the victim is in.
    Quota,
    /// The victim was stopped, by a signal or a tracer.
    Stopped,
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
    /// A kind that this version does not know; the subject keeps its word.
    Unknown,
}

impl CulpritKind {
    /// All kinds, in the order of the schema.
    pub const ALL: [CulpritKind; 18] = [
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
        CulpritKind::Quota,
        CulpritKind::Stopped,
        CulpritKind::Switch,
        CulpritKind::Hypervisor,
        CulpritKind::Firmware,
        CulpritKind::Unresolved,
        CulpritKind::Loss,
        CulpritKind::Unknown,
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
            CulpritKind::Quota => "quota",
            CulpritKind::Stopped => "stopped",
            CulpritKind::Switch => "switch",
            CulpritKind::Hypervisor => "hypervisor",
            CulpritKind::Firmware => "firmware",
            CulpritKind::Unresolved => "unresolved",
            CulpritKind::Loss => "loss",
            CulpritKind::Unknown => "unknown",
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
            CulpritKind::Hypervisor
                | CulpritKind::Firmware
                | CulpritKind::Unresolved
                | CulpritKind::Loss
                | CulpritKind::Unknown
        )
    }
}

impl fmt::Display for CulpritKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
