//! The kinds of culprit: the one table of what holds for all of a kind.

use crate::Confidence;
use crate::words::closed_words;

/// Whether time under a kind counts as explained.
enum Time {
    /// Kernel activity that was seen.
    Explained,
    /// What was concluded, or not known.
    Unexplained,
}

macro_rules! kinds {
    ($($(#[$of:meta])* $variant:ident = $word:literal $time:ident $confidence:ident,)*) => {
        closed_words! {
            /// What kind of thing ran instead of the victim.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            CulpritKind {
                $($(#[$of])* $variant = $word,)*
            }
        }

        impl CulpritKind {
            /// Whether time under this kind counts as explained: kernel activity that was seen.
            #[must_use]
            pub fn is_explained(self) -> bool {
                let time = match self {
                    $(CulpritKind::$variant => Time::$time,)*
                };
                matches!(time, Time::Explained)
            }

            /// How sure a part of this kind is, where no more is known of it.
            #[must_use]
            pub fn confidence(self) -> Confidence {
                match self {
                    $(CulpritKind::$variant => Confidence::$confidence,)*
                }
            }
        }
    };
}

kinds! {
    /// Another thread; its name is the thread's.
    Thread = "thread" Explained High,
    /// A kernel worker; its name is the work function.
    Kworker = "kworker" Explained High,
    /// A device interrupt; its name is the handler's.
    Irq = "irq" Explained High,
    /// The local timer interrupt; its name is the timer function.
    Timer = "timer" Explained High,
    /// A softirq; its name is the vector's.
    Softirq = "softirq" Explained High,
    /// A call or a reschedule from another CPU; its name is the function called.
    Ipi = "ipi" Explained High,
    /// A page fault of the victim.
    PageFault = "page_fault" Explained Medium,
    /// A non-maskable interrupt; its name is the handler's.
    Nmi = "nmi" Explained High,
    /// A machine check.
    Mce = "mce" Explained High,
    /// The scheduler's real-time throttling of the victim, or its deadline budget.
    RtThrottle = "rt_throttle" Explained High,
    /// The CPU quota of a control group that the victim is in.
    Quota = "quota" Explained Medium,
    /// The victim was stopped, by a signal or a tracer.
    Stopped = "stopped" Explained High,
    /// The cost of switching contexts, up to the measured entry and exit cost.
    Switch = "switch" Explained Medium,
    /// The hypervisor took the CPU, or was late to deliver an interrupt.
    Hypervisor = "hypervisor" Unexplained Low,
    /// Firmware took the CPU (a system management interrupt).
    Firmware = "firmware" Unexplained High,
    /// Nothing that was recorded explains it.
    Unresolved = "unresolved" Unexplained Low,
    /// Trace data was lost nearby: no verdict.
    Loss = "loss" Unexplained Low,
    /// A kind that this version does not know; the subject keeps its word.
    Unknown = "unknown" Unexplained High,
}
