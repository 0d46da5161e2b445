//! Words for verdicts without a culprit.

use crate::number::count;
use jitterscope_analyze::RunSummary;
use jitterscope_model::Verdict;

/// The meaning of a verdict, to read beside its name, which it does not repeat; `None` if the explanation of its kind
/// suffices.
pub(super) fn explanation(verdict: Verdict) -> Option<&'static str> {
    Some(match verdict {
        Verdict::IdleExit => "the CPU had to leave an idle state, or its timer fired late there",
        Verdict::LeavingIdle => "woken: the idle loop ended and the scheduler switched",
        Verdict::ReturnToThread => "scheduled: the kernel's way back to the thread",
        Verdict::DeadlineBudget => "the deadline thread had used up its own budget",
        Verdict::YieldedPeriod => {
            "the deadline thread called sched_yield: it waits for its next period"
        }
        Verdict::Frozen => {
            "its control group, or one above, was frozen (docker pause and its like)"
        }
        Verdict::StoppedBySignal => "a stop signal (SIGSTOP and its like) held the thread",
        Verdict::StoppedByTracer => "a tracer or debugger held the thread",
        Verdict::NoEventInVm => "probably the host, or an exception that leaves no event",
        Verdict::UnrecordedFault => {
            "the kernel counted page faults of the thread that it did not record"
        }
        Verdict::RunnableIdle => {
            "the thread could run and the CPU idled; nothing that was counted says why"
        }
        Verdict::IdleMeanwhile => {
            "the CPU idled, and no record says why the thread did not run: its last switch left none"
        }
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
        Verdict::VirtualMachinePaused => {
            "several CPUs stood still together: the host paused the guest"
        }
        Verdict::Smi => "system management interrupt, counted by the CPU",
        Verdict::AllCpusAtOnce => "all measured CPUs stood still together, as in an SMI",
        Verdict::OwnBookkeeping => "the probe stored the stall before",
        Verdict::UntracedInterrupt => "an interrupt without a tracepoint was counted",
        Verdict::FrequencyChange => "the CPU changed its frequency",
        Verdict::UnderOneMicrosecond => "memory, a busy SMT sibling or the CPU itself",
        Verdict::OutsideThisKernel => {
            "no kernel event: hardware, firmware, or an exception that leaves none"
        }
        Verdict::LateTimer => "the timer fired late, and the CPU was not seen to idle",
        Verdict::UnrecordedSwitch => {
            "which thread had the CPU is not known: the idle thread leaves no records"
        }
        Verdict::RunQueueWait => "woken, but it is not known what ran instead",
        Verdict::FrameLeftOpen => "its beginning was recorded, its end was not",
        Verdict::NoVerdict => "the stored run has no attribution for it",
        Verdict::TraceDisturbed => "another process wrote to the trace's controls",
        Verdict::ContextSwitch
        | Verdict::RingFull
        | Verdict::EarlierMessages
        | Verdict::NotSeen
        | Verdict::NoRecord
        | Verdict::TraceDataLost => return None,
    })
}

/// The meaning of a verdict beside its name, for every verdict.
pub(crate) fn meaning(verdict: Verdict) -> &'static str {
    explanation(verdict).unwrap_or_else(|| beside_name(verdict))
}

/// The text of a verdict beside its name.
pub(super) fn beside_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::ContextSwitch => "scheduler path beside sched_switch",
        Verdict::IdleExit => "the CPU was idle",
        Verdict::RingFull => "the producer waited for a slot",
        Verdict::EarlierMessages => "dealt with in their order",
        Verdict::LateInterrupt => "the CPU stood still before the interrupt was delivered",
        Verdict::HostBeforeFirstEvent => "the CPU stood still before the kernel was entered",
        Verdict::DeadlineBudget => "used up, so that lesser threads or none ran",
        Verdict::YieldedPeriod => "by sched_yield, until its next period begins",
        Verdict::NoEventInVm => "probably the host, or an exception that leaves no event",
        Verdict::UnrecordedFault => "counted by the kernel, without a record",
        Verdict::AsleepInKernel => "the thread slept, though it only reads the clock",
        Verdict::RunnableIdle => "the CPU idled though the thread could run",
        Verdict::IdleMeanwhile => "the CPU idled, and nothing says why the thread did not run",
        Verdict::CpuTaken | Verdict::VirtualMachinePaused => {
            "no kernel event inside, on a virtual machine"
        }
        Verdict::Smi => "system management interrupt",
        Verdict::AllCpusAtOnce => "as system management interrupts do",
        Verdict::BeforeFirstEvent => "kernel entry, firmware or hardware",
        Verdict::BetweenEvents => "kernel code without tracepoints, or the CPU was taken",
        Verdict::AfterLastEvent => "kernel exit, or the CPU was taken",
        Verdict::OwnBookkeeping => "the probe stored the stall before",
        Verdict::FrequencyChange => "the CPU changed its frequency nearby",
        Verdict::UnderOneMicrosecond => "memory, SMT sibling or microarchitecture",
        Verdict::OutsideThisKernel => "hardware or firmware",
        Verdict::UnrecordedSwitch => "the way out of idle, or a thread that ran before",
        Verdict::NotSeen => "no record says what ran",
        Verdict::NoRecord => "outside this kernel, or the hand-over itself",
        Verdict::NoVerdict => "the stored run has none",
        Verdict::TraceDisturbed => "another process wrote to the trace's controls",
        Verdict::TraceDataLost => "the ring buffer overran near this stall",
        Verdict::LeavingIdle
        | Verdict::StoppedBySignal
        | Verdict::StoppedByTracer
        | Verdict::Frozen
        | Verdict::ReturnToThread
        | Verdict::UntracedInterrupt
        | Verdict::LateTimer
        | Verdict::RunQueueWait
        | Verdict::FrameLeftOpen => "",
    }
}

/// The least share of the stalled time from which the report lists what stalls without events may be.
const TELLING_SHARE: f64 = 0.001;

/// The possible exceptions behind stalls without any kernel event, once for each report; `None` without such stalls.
/// Exceptions that the kernel counts are reported as counted.
pub(crate) fn possibilities(summary: &RunSummary) -> Option<String> {
    let eventless = |verdict: Option<Verdict>| {
        matches!(
            verdict,
            Some(Verdict::NoEventInVm | Verdict::OutsideThisKernel | Verdict::UnrecordedFault)
        )
    };
    let classes = &summary.attribution.as_ref()?.unexplained.classes;
    let mut telling = classes.iter().filter(|row| row.share >= TELLING_SHARE);
    telling.find(|row| eventless(row.subject.as_verdict()))?;
    let faults = match summary.trust.page_faults {
        None => "an unknown number of the measuring threads'".to_owned(),
        Some(0) => "none of the measuring threads'".to_owned(),
        Some(1) => "one of the measuring threads'".to_owned(),
        Some(n) => format!("{} of the measuring threads'", count(n)),
    };
    Some(format!(
        "Exceptions that leave no kernel event are debug traps, breakpoints (uprobes), a first use of the FPU (#NM), \
         alignment checks. The kernel does not count them; of page faults it counted {faults}."
    ))
}
