//! The evidence for a verdict.

use crate::words::open_words;

open_words! {
    /// The evidence for a verdict: records, or an exclusion.
    Evidence {
        /// The record of an exception, which has no exit record.
        ExceptionRecord = "page_fault_user/kernel or mce_record (no exit record)",
        /// An interrupt vector's entry and exit, and the function called through it.
        VectorRecords = "irq_vectors entry/exit, csd_function_entry/exit",
        /// A called function's entry and exit.
        CallRecords = "csd_function_entry/exit, csd_queue_cpu",
        /// A device handler's entry and exit.
        HandlerRecords = "irq_handler_entry/exit",
        /// A worker's time on the CPU, and the start and end of its work item.
        WorkRecords = "sched_switch, workqueue_execute_start/end",
        /// The record that an NMI handler leaves when it ends.
        NmiRecord = "nmi_handler",
        /// A softirq's entry and exit.
        SoftirqRecords = "softirq_entry/exit",
        /// The switch to a thread and the next one.
        SwitchRecords = "sched_switch",
        /// The local timer interrupt's entry and exit, and the functions that it ran.
        LocalTimerRecords = "irq_vectors:local_timer, hrtimer_expire_entry/exit",
        /// A timer function's entry and exit.
        TimerRecords = "hrtimer_expire_entry/exit or timer_expire_entry/exit",
        /// Entry or exit cost: no more than the smallest edge of its class.
        SmallestEdge = "smallest edge of its class in this run",
        /// On a virtual machine: the interrupt was due, by the grid of the tick or by its sender's record, the thread
        /// ran with interrupts enabled, and the interrupt came late.
        LateInterruptInVm = "an interrupt came later than it was due, on a virtual machine",
        /// On a virtual machine: the thread had the CPU for longer than the scheduler charged it for.
        UnchargedInVm = "sched_switch; sched_stat_runtime charged the thread for less, on a virtual machine",
        /// The kernel counted stolen time while the CPU stood still before an interrupt.
        StealCountBeforeInterrupt = "time before the first event; /proc/stat counted stolen time meanwhile",
        /// The CPU stood still before an interrupt, and there is a hypervisor.
        LeadInterruptInVm = "time before the first event, an interrupt, on a virtual machine",
        /// The CPU stood still before the kernel was entered without an interrupt, and there is a hypervisor.
        LeadInVm = "time before the first event, on a virtual machine",
        Lead = "time before the first event",
        /// Time between two events.
        Hole = "time between events with no frame open",
        Trail = "time after the last event",
        /// The CPU counted system management interrupts meanwhile.
        SmiCount = "SMI count rose",
        /// The stall begins where the one before it ended.
        AdjacentStall = "begins where the stall before it ended",
        /// The counter of an interrupt without a tracepoint rose meanwhile.
        UntracedCount = "/proc/interrupts counted a vector without a tracepoint",
        /// The kernel counted stolen time meanwhile.
        StealCount = "no event; /proc/stat counted stolen time meanwhile",
        /// The kernel counted page faults of the victim that left no record.
        FaultCount = "no event; the kernel counted page faults of the thread without a record",
        /// The switch away from the victim, and the state in which it left.
        LeavingState = "sched_switch, and the state in which the thread left",
        /// The victim was runnable, and its control group was throttled meanwhile.
        QuotaCount = "sched_switch while runnable; cpu.stat counted throttling",
        /// The switch to a thread and the next one; the victim's control group was throttled meanwhile, so the victim
        /// may not have been allowed to run at all.
        SwitchRecordsWhileThrottled = "sched_switch; cpu.stat counted throttling meanwhile, perhaps of this thread",
        /// A recorded frequency change nearby.
        FrequencyRecord = "power:cpu_frequency",
        /// No event, and shorter than any kernel entry.
        TooShort = "too short for a kernel entry",
        /// No event, and there is a hypervisor.
        HypervisorPresent = "no event; hypervisor present",
        /// All measured CPUs stood still together.
        AllCpusStalled = "all measured CPUs stalled together; the SMI count cannot be read",
        /// No event, and no hypervisor.
        NothingSeen = "no kernel event, no hypervisor",
        /// Records were lost near the stall.
        LostRecords = "lost records",
        /// Records of the scheduler and of the interrupts on a sleeper's CPU.
        WakeupRecords = "sched_switch, sched_waking, cpu_idle, interrupts",
        /// The scheduler's records of the followed threads.
        ThreadRecords = "sched_switch, sched_waking, sched_migrate_task, interrupts",
        /// The times of a message that the threads themselves took.
        MessageTimes = "the message's own times",
        /// Nothing: there is no verdict.
        Nothing = "nothing",
    }
}
