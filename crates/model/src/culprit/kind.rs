//! The kinds of culprit: one table of their common properties.

use crate::Confidence;
use crate::words::closed_words;

/// Whether time under a kind counts as explained.
enum Time {
    /// Recorded kernel activity.
    Explained,
    /// Concluded, or unknown.
    Unexplained,
}

/// What a culprit's name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameOf {
    Thread,
    /// The function of a work item.
    Work,
    Timer,
    /// The vector of a softirq.
    Softirq,
    /// A function that another CPU called, or the vector that carried the call.
    Call,
    /// The handler of a device's interrupt, or an interrupt vector.
    Interrupt,
    /// A page fault, by where it came from.
    Fault,
    /// The handler of a non-maskable interrupt.
    Nmi,
    /// The kind itself, which has only this name.
    Itself,
}

macro_rules! kinds {
    ($($(#[$of:meta])* $variant:ident = $word:literal $time:ident $confidence:ident $named:ident,)*) => {
        closed_words! {
            /// What kind of thing ran instead of the victim.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            CulpritKind {
                $($(#[$of])* $variant = $word,)*
            }
        }

        impl CulpritKind {
            /// Whether time under this kind counts as explained, which means recorded kernel activity.
            #[must_use]
            pub fn is_explained(self) -> bool {
                let time = match self {
                    $(CulpritKind::$variant => Time::$time,)*
                };
                matches!(time, Time::Explained)
            }

            /// What the names of this kind refer to.
            #[must_use]
            pub fn name_of(self) -> NameOf {
                match self {
                    $(CulpritKind::$variant => NameOf::$named,)*
                }
            }

            /// The default confidence of a part of this kind.
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
    Thread = "thread" Explained High Thread,
    /// A kernel worker; its name is the work function.
    Kworker = "kworker" Explained High Work,
    /// A device interrupt; its name is the handler's.
    Irq = "irq" Explained High Interrupt,
    /// The local timer interrupt; its name is the timer function.
    Timer = "timer" Explained High Timer,
    /// A softirq; its name is the vector's.
    Softirq = "softirq" Explained High Softirq,
    /// A call or a reschedule from another CPU; its name is the function called.
    Ipi = "ipi" Explained High Call,
    /// A page fault of the victim.
    PageFault = "page_fault" Explained Medium Fault,
    /// A non-maskable interrupt; its name is the handler's.
    Nmi = "nmi" Explained High Nmi,
    Mce = "mce" Explained High Itself,
    /// The scheduler's real-time throttling of the victim, or its deadline budget.
    RtThrottle = "rt_throttle" Explained High Itself,
    /// The CPU quota of a control group that the victim is in.
    Quota = "quota" Explained Medium Itself,
    /// The same, but another thread had the CPU meanwhile: either alone would have kept the victim waiting, so neither
    /// explains this time.
    QuotaBeside = "quota_beside" Unexplained Medium Itself,
    /// The victim was stopped, by a signal or a tracer.
    Stopped = "stopped" Explained High Itself,
    /// The cost of switching contexts, up to the measured entry and exit cost.
    Switch = "switch" Explained Medium Itself,
    /// The hypervisor took the CPU, or was late to deliver an interrupt.
    Hypervisor = "hypervisor" Unexplained Low Itself,
    /// Firmware took the CPU (a system management interrupt).
    Firmware = "firmware" Unexplained High Itself,
    /// No record explains it.
    Unresolved = "unresolved" Unexplained Low Itself,
    /// Trace data was lost nearby: no verdict.
    Loss = "loss" Unexplained Low Itself,
    /// A kind that this version does not know; the subject keeps its word.
    Unknown = "unknown" Unexplained High Itself,
}
