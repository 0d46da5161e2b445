//! What a verdict rests on.

use crate::words::open_words;

open_words! {
    /// What a verdict rests on: which records, or which exclusion.
    Evidence {
        /// The record of an exception, which has no exit record.
        ExceptionRecord = "page_fault_user/kernel or mce_record (no exit record)",
        /// An interrupt vector's entry and exit, with the function called through it.
        VectorRecords = "irq_vectors entry/exit, csd_function_entry/exit",
        /// A called function's entry and exit.
        CallRecords = "csd_function_entry/exit, csd_queue_cpu",
        /// A device handler's entry and exit.
        HandlerRecords = "irq_handler_entry/exit",
        /// A worker's turn, and its work item's start and end.
        WorkRecords = "sched_switch, workqueue_execute_start/end",
        /// The record that an NMI handler leaves when it has ended.
        NmiRecord = "nmi_handler",
        /// A softirq's entry and exit.
        SoftirqRecords = "softirq_entry/exit",
        /// The switch to a thread and the next one.
        SwitchRecords = "sched_switch",
        /// The local timer interrupt's entry and exit, with the functions that it ran.
        LocalTimerRecords = "irq_vectors:local_timer, hrtimer_expire_entry/exit",
        /// A timer function's entry and exit.
        TimerRecords = "hrtimer_expire_entry/exit or timer_expire_entry/exit",
        /// Entry or exit cost: no more than the smallest edge of its class.
        SmallestEdge = "smallest edge of its class in this run",
        /// The interrupt was due, by the grid of the tick or by the record of who sent it, the thread ran with
        /// interrupts enabled, and it came no sooner, on a virtual machine.
        LateInterruptInVm = "an interrupt came later than it was due, on a virtual machine",
        /// The kernel's clocks counted time that the host gave to others while the CPU stood still before an interrupt.
        StealCountBeforeInterrupt = "time before the first event; /proc/stat counted stolen time meanwhile",
        /// The CPU stood still before an interrupt was delivered, and there is a hypervisor.
        LeadInterruptInVm = "time before the first event, an interrupt, on a virtual machine",
        /// The CPU stood still before the kernel was entered, and there is a hypervisor; no interrupt ended it.
        LeadInVm = "time before the first event, on a virtual machine",
        /// What lies before the first event.
        Lead = "time before the first event",
        /// What lies between two events.
        Hole = "time between events with no frame open",
        /// What lies after the last event.
        Trail = "time after the last event",
        /// The CPU counted system management interrupts meanwhile.
        SmiCount = "SMI count rose",
        /// The stall before ended where this one begins.
        AdjacentStall = "begins where the stall before it ended",
        /// An interrupt without a tracepoint was counted meanwhile.
        UntracedCount = "/proc/interrupts counted a vector without a tracepoint",
        /// The kernel's clocks counted time that the host gave to others meanwhile.
        StealCount = "no event; /proc/stat counted stolen time meanwhile",
        /// The kernel counted page faults of the victim that left no record.
        FaultCount = "no event; the kernel counted page faults of the thread without a record",
        /// The switch away from the victim, and the state in which it left.
        LeavingState = "sched_switch, and the state in which the thread left",
        /// The victim could run, and its control group was throttled meanwhile.
        QuotaCount = "sched_switch while runnable; cpu.stat counted throttling",
        /// The switch to a thread and the next one; and the victim's control group was throttled meanwhile, so
        /// that the victim may not have been allowed to run at all.
        SwitchRecordsWhileThrottled = "sched_switch; cpu.stat counted throttling meanwhile, perhaps of this thread",
        /// A change of frequency was recorded nearby.
        FrequencyRecord = "power:cpu_frequency",
        /// No event, and shorter than a kernel entry can be.
        TooShort = "too short for a kernel entry",
        /// No event, and there is a hypervisor.
        HypervisorPresent = "no event; hypervisor present",
        /// All measured CPUs stood still together.
        AllCpusStalled = "all measured CPUs stalled together; the SMI count cannot be read",
        /// No event, and no hypervisor.
        NothingSeen = "no kernel event, no hypervisor",
        /// Records were lost near the stall.
        LostRecords = "lost records",
        /// What the scheduler and the interrupts of a sleeper's CPU left on record.
        WakeupRecords = "sched_switch, sched_waking, cpu_idle, interrupts",
        /// What the scheduler left on record of the threads that were followed.
        ThreadRecords = "sched_switch, sched_waking, sched_migrate_task, interrupts",
        /// The times that the threads themselves took of a message.
        MessageTimes = "the message's own times",
        /// Nothing: there is no verdict.
        Nothing = "nothing",
    }
}
