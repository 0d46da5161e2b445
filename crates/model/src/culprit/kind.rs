//! The kinds of culprit: the one table of their words.

use crate::words::closed_words;

closed_words! {
    /// What kind of thing ran instead of the victim.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    CulpritKind {
        /// Another thread; its name is the thread's.
        Thread = "thread",
        /// A kernel worker; its name is the work function.
        Kworker = "kworker",
        /// A device interrupt; its name is the handler's.
        Irq = "irq",
        /// The local timer interrupt; its name is the timer function.
        Timer = "timer",
        /// A softirq; its name is the vector's.
        Softirq = "softirq",
        /// A call or a reschedule from another CPU; its name is the function called.
        Ipi = "ipi",
        /// A page fault of the victim.
        PageFault = "page_fault",
        /// A non-maskable interrupt; its name is the handler's.
        Nmi = "nmi",
        /// A machine check.
        Mce = "mce",
        /// The scheduler's real-time throttling of the victim, or its deadline budget.
        RtThrottle = "rt_throttle",
        /// The CPU quota of a control group that the victim is in.
        Quota = "quota",
        /// The victim was stopped, by a signal or a tracer.
        Stopped = "stopped",
        /// The cost of switching contexts, up to the measured entry and exit cost.
        Switch = "switch",
        /// The hypervisor took the CPU, or was late to deliver an interrupt.
        Hypervisor = "hypervisor",
        /// Firmware took the CPU (a system management interrupt).
        Firmware = "firmware",
        /// Nothing that was recorded explains it.
        Unresolved = "unresolved",
        /// Trace data was lost nearby: no verdict.
        Loss = "loss",
        /// A kind that this version does not know; the subject keeps its word.
        Unknown = "unknown",
    }
}

impl CulpritKind {
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
