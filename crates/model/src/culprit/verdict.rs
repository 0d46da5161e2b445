//! Verdicts on time that no thread, handler or function explains.

use super::CulpritKind;
use crate::Confidence;

/// The verdicts with their kind and word: the only place with these words. Two verdicts with the same word differ in
/// kind.
macro_rules! verdicts {
    ($($(#[$of:meta])* $variant:ident = $kind:ident $word:literal,)*) => {
        /// A verdict on time that no thread, handler or function explains.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Verdict {
            $($(#[$of])* $variant,)*
        }

        impl Verdict {
            pub const ALL: &[Verdict] = &[$(Verdict::$variant,)*];

            /// The kind that its time counts under.
            #[must_use]
            pub fn kind(self) -> CulpritKind {
                match self {
                    $(Verdict::$variant => CulpritKind::$kind,)*
                }
            }

            /// Its word in files, JSON and reports.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Verdict::$variant => $word,)*
                }
            }
        }
    };
}

verdicts! {
    /// The scheduler's own path to and from another thread.
    ContextSwitch = Switch "context switch",
    /// The CPU had to leave an idle state.
    IdleExit = Switch "idle exit",
    /// The victim was woken: the idle loop ended and the scheduler switched.
    LeavingIdle = Switch "leaving idle",
    /// The victim was scheduled: the kernel's way back to it.
    ReturnToThread = Switch "return to the thread",
    /// The producer waited for a slot, and no stall of the consumer explains it.
    RingFull = Switch "ring full",
    /// Earlier messages were processed first.
    EarlierMessages = Switch "earlier messages",
    /// A deadline victim had used up its own budget.
    DeadlineBudget = RtThrottle "deadline budget",
    /// A deadline victim gave up the rest of its period.
    YieldedPeriod = Stopped "yielded its period",
    /// A signal had stopped the victim.
    StoppedBySignal = Stopped "stopped by a signal",
    /// A tracer such as a debugger had stopped the victim.
    StoppedByTracer = Stopped "stopped by a tracer",
    /// The freezer of a control group had stopped the victim.
    Frozen = Stopped "frozen by a control group",
    /// The host delivered an interrupt late.
    LateInterrupt = Hypervisor "late interrupt",
    /// In a virtual machine: the CPU stood still before the kernel was entered.
    HostBeforeFirstEvent = Hypervisor "before first event",
    /// The host ran something else.
    CpuTaken = Hypervisor "CPU taken",
    /// The host paused several CPUs at once.
    VirtualMachinePaused = Hypervisor "virtual machine paused",
    /// A system management interrupt.
    Smi = Firmware "SMI",
    /// All measured CPUs stood still together, as in a system management interrupt.
    AllCpusAtOnce = Firmware "all CPUs at once",
    /// No kernel event inside, on a virtual machine, and no other evidence about the host.
    NoEventInVm = Unresolved "no kernel event",
    /// No kernel event inside, and the kernel counted page faults of the victim without a record.
    UnrecordedFault = Unresolved "page fault without a record",
    /// The victim was runnable, the CPU idled, and no record shows why.
    RunnableIdle = Unresolved "runnable but idle",
    /// The CPU idled, and no record shows why the victim did not run: its last switch left none.
    IdleMeanwhile = Unresolved "idle meanwhile",
    /// A victim that only reads the clock was put to sleep: frozen by a control group, or waiting in a page fault.
    AsleepInKernel = Unresolved "asleep in the kernel",
    /// The CPU stood still before the kernel was entered.
    BeforeFirstEvent = Unresolved "before first event",
    /// Kernel code without tracepoints ran, or the CPU was taken.
    BetweenEvents = Unresolved "between events",
    /// The kernel exit, or the CPU was taken.
    AfterLastEvent = Unresolved "after last event",
    /// The probe stored the previous stall.
    OwnBookkeeping = Unresolved "own bookkeeping",
    /// The counter of an interrupt without a tracepoint rose.
    UntracedInterrupt = Unresolved "untraced interrupt",
    /// The CPU changed its frequency.
    FrequencyChange = Unresolved "frequency change",
    /// Memory, a busy sibling thread or the CPU itself.
    UnderOneMicrosecond = Unresolved "under 1 us",
    /// No kernel event inside: hardware or firmware.
    OutsideThisKernel = Unresolved "outside this kernel",
    /// The timer fired late, and no record shows that the CPU idled.
    LateTimer = Unresolved "late timer",
    /// The victim was runnable, and no record shows what ran instead.
    RunQueueWait = Unresolved "run-queue wait",
    /// The switch to the thread that had the CPU left no record.
    UnrecordedSwitch = Unresolved "unrecorded switch",
    /// No record shows what ran.
    NotSeen = Unresolved "not seen",
    /// A frame's beginning was recorded, but not its end.
    FrameLeftOpen = Unresolved "frame left open",
    /// For a message: the delay was outside this kernel, or the hand-over itself.
    NoRecord = Unresolved "no record",
    /// Another process wrote to the controls of the trace: its records of that time are not trusted.
    TraceDisturbed = Unresolved "trace was disturbed",
    /// The stored run has no verdict.
    NoVerdict = Unresolved "no verdict",
    /// The ring buffer overran near the stall.
    TraceDataLost = Loss "trace data lost",
}

impl Verdict {
    /// The default confidence of a part with this verdict.
    #[must_use]
    pub fn confidence(self) -> Confidence {
        match self {
            // These leave no record of their own; other records imply them.
            Verdict::YieldedPeriod | Verdict::Frozen => Confidence::Medium,
            _ => self.kind().confidence(),
        }
    }

    #[must_use]
    pub fn parse(kind: CulpritKind, word: &str) -> Option<Verdict> {
        Verdict::ALL
            .iter()
            .copied()
            .find(|verdict| verdict.kind() == kind && verdict.as_str() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict_is_found_by_its_kind_and_word() {
        for verdict in Verdict::ALL {
            assert_eq!(
                Verdict::parse(verdict.kind(), verdict.as_str()),
                Some(*verdict)
            );
        }
        assert_eq!(
            Verdict::parse(CulpritKind::Switch, "before first event"),
            None
        );
    }
}
