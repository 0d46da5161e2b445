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

/// What the name of a culprit is the name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameOf {
    /// A thread.
    Thread,
    /// The function of a work item.
    Work,
    /// A timer function.
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
    /// The thing itself: it has but this name.
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
            /// Whether time under this kind counts as explained: kernel activity that was seen.
            #[must_use]
            pub fn is_explained(self) -> bool {
                let time = match self {
                    $(CulpritKind::$variant => Time::$time,)*
                };
                matches!(time, Time::Explained)
            }

            /// What the names of this kind are the names of.
            #[must_use]
            pub fn name_of(self) -> NameOf {
                match self {
                    $(CulpritKind::$variant => NameOf::$named,)*
                }
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
    /// A machine check.
    Mce = "mce" Explained High Itself,
    /// The scheduler's real-time throttling of the victim, or its deadline budget.
    RtThrottle = "rt_throttle" Explained High Itself,
    /// The CPU quota of a control group that the victim is in.
    Quota = "quota" Explained Medium Itself,
    /// The victim was stopped, by a signal or a tracer.
    Stopped = "stopped" Explained High Itself,
    /// The cost of switching contexts, up to the measured entry and exit cost.
    Switch = "switch" Explained Medium Itself,
    /// The hypervisor took the CPU, or was late to deliver an interrupt.
    Hypervisor = "hypervisor" Unexplained Low Itself,
    /// Firmware took the CPU (a system management interrupt).
    Firmware = "firmware" Unexplained High Itself,
    /// Nothing that was recorded explains it.
    Unresolved = "unresolved" Unexplained Low Itself,
    /// Trace data was lost nearby: no verdict.
    Loss = "loss" Unexplained Low Itself,
    /// A kind that this version does not know; the subject keeps its word.
    Unknown = "unknown" Unexplained High Itself,
}
