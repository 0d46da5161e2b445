//! Verdicts on time that nobody in particular can be blamed for.

use jitterscope_model::Verdict;

/// What a verdict means; `None` where its kind's phrase says it.
pub(super) fn find(verdict: Verdict) -> Option<&'static str> {
    Some(match verdict {
        Verdict::IdleExit => "the CPU had to leave an idle state, or its timer fired late there",
        Verdict::LeavingIdle => "woken: the idle loop ended and the scheduler switched",
        Verdict::ReturnToThread => "scheduled: the kernel's way back to the thread",
        Verdict::DeadlineBudget => "the deadline thread had used up its own budget",
        Verdict::StoppedBySignal => "a stop signal (SIGSTOP and its like) held the thread",
        Verdict::StoppedByTracer => "a tracer or debugger held the thread",
        Verdict::NoEventInVm => "no kernel event; probably the host, or an exception that leaves none",
        Verdict::UnrecordedFault => "the kernel counted page faults of the thread that it did not record",
        Verdict::RunnableIdle => "the thread could run and the CPU idled; nothing that was counted says why",
        Verdict::AsleepInKernel => {
            "the probe was put to sleep: frozen by a control group, or waiting in a page fault"
        }
        Verdict::LateInterrupt => "the host delivered an interrupt late",
        Verdict::HostBeforeFirstEvent | Verdict::BeforeFirstEvent => {
            "the CPU stood still before the kernel was entered"
        }
        Verdict::BetweenEvents => "kernel code without tracepoints, or the CPU was taken",
        Verdict::AfterLastEvent => "kernel exit, or the CPU was taken",
        Verdict::CpuTaken => "no kernel event inside: the host ran something else",
        Verdict::VirtualMachinePaused => "several CPUs stood still together: the host paused the guest",
        Verdict::Smi => "system management interrupt, counted by the CPU",
        Verdict::AllCpusAtOnce => "all measured CPUs stood still together, as in an SMI",
        Verdict::OwnBookkeeping => "the probe stored the stall before",
        Verdict::UntracedInterrupt => "an interrupt without a tracepoint was counted",
        Verdict::FrequencyChange => "the CPU changed its frequency",
        Verdict::UnderOneMicrosecond => "memory, a busy SMT sibling or the CPU itself",
        Verdict::OutsideThisKernel => "no kernel event: hardware, firmware, or an exception that leaves none",
        Verdict::LateTimer => "the timer fired late, and the CPU was not seen to idle",
        Verdict::UnrecordedSwitch => "who had the CPU is not known: the idle thread leaves no records",
        Verdict::RunQueueWait => "woken, but it is not known what ran instead",
        Verdict::FrameLeftOpen => "its beginning was recorded, its end was not",
        Verdict::NoVerdict => "the stored run has no attribution for it",
        Verdict::ContextSwitch
        | Verdict::RingFull
        | Verdict::EarlierMessages
        | Verdict::NotSeen
        | Verdict::NoRecord
        | Verdict::TraceDataLost => return None,
    })
}
