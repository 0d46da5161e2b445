//! Verdicts on time that no thread, handler or function can be blamed for.

use super::CulpritKind;

/// The verdicts with their kind and word: the only place where these words stand. Two verdicts of one word
/// differ in kind.
macro_rules! verdicts {
    ($($(#[$of:meta])* $variant:ident = $kind:ident $word:literal,)*) => {
        /// A verdict on time that no thread, handler or function can be blamed for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Verdict {
            $($(#[$of])* $variant,)*
        }

        impl Verdict {
            /// All of them.
            pub const ALL: &[Verdict] = &[$(Verdict::$variant,)*];

            /// Under which kind its time is counted.
            #[must_use]
            pub fn kind(self) -> CulpritKind {
                match self {
                    $(Verdict::$variant => CulpritKind::$kind,)*
                }
            }

            /// The word for it in files, JSON and reports.
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
    /// Earlier messages were dealt with first.
    EarlierMessages = Switch "earlier messages",
    /// A deadline victim had used up its own budget.
    DeadlineBudget = RtThrottle "deadline budget",
    /// A signal had stopped the victim.
    StoppedBySignal = Stopped "stopped by a signal",
    /// A tracer, as debuggers are, had stopped the victim.
    StoppedByTracer = Stopped "stopped by a tracer",
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
    /// No kernel event inside, on a virtual machine, and nothing else that tells of the host.
    NoEventInVm = Unresolved "no kernel event",
    /// No kernel event inside, and the kernel counted page faults of the victim that left none.
    UnrecordedFault = Unresolved "page fault without a record",
    /// The victim could run, the CPU idled, and nothing tells why.
    RunnableIdle = Unresolved "runnable but idle",
    /// A victim that only reads the clock was put to sleep: frozen by a control group, or waiting in a page fault.
    AsleepInKernel = Unresolved "asleep in the kernel",
    /// The CPU stood still before the kernel was entered.
    BeforeFirstEvent = Unresolved "before first event",
    /// Kernel code without tracepoints, or the CPU was taken.
    BetweenEvents = Unresolved "between events",
    /// Kernel exit, or the CPU was taken.
    AfterLastEvent = Unresolved "after last event",
    /// The probe stored the stall before.
    OwnBookkeeping = Unresolved "own bookkeeping",
    /// An interrupt without a tracepoint was counted.
    UntracedInterrupt = Unresolved "untraced interrupt",
    /// The CPU changed its frequency.
    FrequencyChange = Unresolved "frequency change",
    /// Memory, a busy sibling thread or the CPU itself.
    UnderOneMicrosecond = Unresolved "under 1 us",
    /// No kernel event inside: hardware or firmware.
    OutsideThisKernel = Unresolved "outside this kernel",
    /// The timer fired late, and the CPU was not seen to idle.
    LateTimer = Unresolved "late timer",
    /// The victim was woken, and it is not known what ran instead.
    RunQueueWait = Unresolved "run-queue wait",
    /// The switch to whoever had the CPU left no record.
    UnrecordedSwitch = Unresolved "unrecorded switch",
    /// No record says what ran.
    NotSeen = Unresolved "not seen",
    /// A frame's beginning was recorded, its end was not.
    FrameLeftOpen = Unresolved "frame left open",
    /// Of a message: outside this kernel, or the hand-over itself.
    NoRecord = Unresolved "no record",
    /// The stored run has none.
    NoVerdict = Unresolved "no verdict",
    /// The ring buffer overran near the stall.
    TraceDataLost = Loss "trace data lost",
}

impl Verdict {
    /// The verdict of this kind and word.
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
