//! One decoded tracepoint record.

use crate::{CpuId, ExecutionContext, Nanos, Ticks};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A short text that many records share: an interrupt's action, a workqueue, an interrupt vector.
pub type Name = Arc<str>;

/// A thread's name as the kernel keeps it: up to 15 bytes, not necessarily UTF-8.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Comm(pub [u8; 16]);

impl Comm {
    /// The first 15 bytes of `text`.
    #[must_use]
    pub fn new(text: &str) -> Comm {
        Comm::from_bytes(text.as_bytes())
    }

    /// The bytes up to the first NUL, 15 at most.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Comm {
        let mut comm = [0; 16];
        for (to, from) in comm
            .iter_mut()
            .zip(bytes.iter().take_while(|b| **b != 0))
            .take(15)
        {
            *to = *from;
        }
        Comm(comm)
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0[0] == 0
    }

    /// Without the padding.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        let len = self.0.iter().position(|b| *b == 0).unwrap_or(self.0.len());
        &self.0[..len]
    }
}

impl fmt::Display for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&String::from_utf8_lossy(self.as_bytes()))
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(self.as_bytes()), f)
    }
}

/// A kernel text address, named through the symbol table of the same boot.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct KernelAddr(pub u64);

/// A task as the scheduler's records name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskRef {
    /// Kernel thread id; 0 is the idle task of its CPU.
    pub tid: i32,
    /// Name.
    pub comm: Comm,
    /// Kernel priority: below 0 deadline, 0 to 99 real-time (lower is more urgent), 100 to 139 fair.
    pub prio: i32,
}

/// One decoded tracepoint record.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelEvent {
    /// When, on the probe's clock.
    pub time: Ticks,
    /// The CPU that recorded it.
    pub cpu: CpuId,
    /// The task that was current there.
    pub tid: i32,
    /// Whether it was that task that did it.
    pub context: ExecutionContext,
    /// What happened.
    pub kind: EventKind,
}

/// What a record says. Names follow the tracepoints; `hrtimer`, `timer`, `work` and `csd` are the
/// addresses of the kernel objects, which pair an entry with its exit and a sender with a receiver.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// `sched:sched_switch`.
    SchedSwitch {
        /// Who left the CPU.
        prev: TaskRef,
        /// Its state: 0 runnable (preempted), else the kernel's sleep bits.
        prev_state: u64,
        /// Who got it.
        next: TaskRef,
    },
    /// `sched:sched_waking`: the current task wakes another.
    SchedWaking {
        /// The task being woken.
        task: TaskRef,
        /// The CPU that it last ran on, where it usually wakes.
        target: CpuId,
    },
    /// `sched:sched_migrate_task`.
    SchedMigrate {
        /// The task that moves.
        task: TaskRef,
        /// From.
        from: CpuId,
        /// To.
        to: CpuId,
    },
    /// `sched:sched_stat_runtime`: a task is charged for the time since it was last charged, or put on the
    /// CPU.
    StatRuntime {
        /// Which task.
        tid: i32,
        /// How long it ran, nanoseconds of the scheduler's clock.
        runtime_ns: u64,
    },
    /// `task:task_newtask`: the current task makes another.
    TaskNew {
        /// Its thread id.
        tid: i32,
        /// Its name: that of its maker.
        comm: Comm,
        /// Whether it is a thread of the same process, not a process of its own.
        thread: bool,
    },
    /// `task:task_rename`: a task has another name, by exec or because it was given one.
    TaskRename {
        /// Its thread id.
        tid: i32,
        /// The name that it has from now on.
        comm: Comm,
    },
    /// `signal:signal_generate` of a signal that stops: the current task sends it.
    StopSignal {
        /// The thread that it is for; of a whole process its first thread, which has the process's id.
        tid: i32,
    },
    /// `irq:irq_handler_entry`: a device's handler.
    IrqEntry {
        /// Interrupt number.
        irq: u32,
        /// The handler's registered name.
        action: Name,
    },
    /// `irq:irq_handler_exit`.
    IrqExit {
        /// Interrupt number.
        irq: u32,
    },
    /// `irq:softirq_entry`.
    SoftirqEntry {
        /// Softirq vector, see [`softirq_name`].
        vec: u32,
    },
    /// `irq:softirq_exit`.
    SoftirqExit {
        /// Softirq vector.
        vec: u32,
    },
    /// `irq_vectors:NAME_entry`.
    VectorEntry {
        /// NAME, for example `local_timer`, `reschedule`, `call_function_single`.
        vector: Name,
    },
    /// `irq_vectors:NAME_exit`.
    VectorExit {
        /// NAME.
        vector: Name,
    },
    /// `nmi:nmi_handler`, recorded when the handler has ended: it ran for the `length` before.
    NmiHandler {
        /// The handler.
        handler: KernelAddr,
        /// How long it ran, nanoseconds.
        delta_ns: u64,
    },
    /// `workqueue:workqueue_execute_start`.
    WorkStart {
        /// The work item.
        work: u64,
        /// What it runs.
        function: KernelAddr,
    },
    /// `workqueue:workqueue_execute_end`.
    WorkEnd {
        /// The work item.
        work: u64,
    },
    /// `workqueue:workqueue_queue_work`: the current task queues work.
    WorkQueued {
        /// The work item.
        work: u64,
        /// What it will run.
        function: KernelAddr,
        /// The queue.
        workqueue: Name,
        /// The CPU asked for; `None` for any.
        target: Option<CpuId>,
    },
    /// `timer:timer_expire_entry`.
    TimerEntry {
        /// The timer.
        timer: u64,
        /// Its function.
        function: KernelAddr,
    },
    /// `timer:timer_expire_exit`.
    TimerExit {
        /// The timer.
        timer: u64,
    },
    /// `timer:hrtimer_expire_entry`.
    HrtimerEntry {
        /// The timer.
        hrtimer: u64,
        /// Its function.
        function: KernelAddr,
        /// The kernel's clock, by which the timer goes, when its interrupt came: not when it was due.
        now: Nanos,
    },
    /// `timer:hrtimer_expire_exit`.
    HrtimerExit {
        /// The timer.
        hrtimer: u64,
    },
    /// `csd:csd_function_entry`: a function called by another CPU.
    CsdEntry {
        /// The function.
        function: KernelAddr,
        /// The call's descriptor.
        csd: u64,
    },
    /// `csd:csd_function_exit`.
    CsdExit {
        /// The function.
        function: KernelAddr,
        /// The call's descriptor.
        csd: u64,
    },
    /// `csd:csd_queue_cpu`: the current task calls a function on another CPU.
    CsdQueued {
        /// The CPU called.
        target: CpuId,
        /// The function.
        function: KernelAddr,
        /// The call's descriptor.
        csd: u64,
        /// Where in the kernel the call was made.
        callsite: KernelAddr,
    },
    /// `ipi:ipi_send_cpu`: the current task interrupts one CPU.
    IpiSendCpu {
        /// The CPU interrupted.
        target: CpuId,
        /// Where in the kernel.
        callsite: KernelAddr,
        /// The function that will run; 0 for a reschedule.
        callback: KernelAddr,
    },
    /// `ipi:ipi_send_cpumask`: the current task interrupts several CPUs.
    IpiSendCpumask {
        /// Those of them that fit in 64 bits (bit n is CPU n).
        targets: u64,
        /// Where in the kernel.
        callsite: KernelAddr,
        /// The function that will run.
        callback: KernelAddr,
    },
    /// `exceptions:page_fault_user` and `page_fault_kernel`. There is no exit record.
    PageFault {
        /// Whether user code faulted.
        user: bool,
        /// The address touched.
        address: u64,
        /// The instruction.
        ip: u64,
    },
    /// `tlb:tlb_flush`.
    TlbFlush {
        /// The kernel's `enum tlb_flush_reason`: 0 task switch, 1 remote shootdown, 2 local
        /// shootdown, 3 local mm shootdown, 4 remote send IPI, 5 remote wrong CPU.
        reason: u32,
        /// Pages flushed; -1 for all.
        pages: i64,
    },
    /// `timer:tick_stop`.
    TickStop {
        /// Whether the tick was stopped.
        success: bool,
        /// What kept it: the kernel's `TICK_DEP_MASK_*` bits.
        dependency: u32,
    },
    /// `power:cpu_frequency`.
    CpuFrequency {
        /// Which CPU changed.
        target: CpuId,
        /// To, in kHz.
        khz: u32,
    },
    /// `power:cpu_idle`; `None` when idle ends.
    CpuIdle {
        /// The idle state entered.
        state: Option<u32>,
    },
    /// `mce:mce_record`.
    MachineCheck {
        /// The bank that reported.
        bank: u32,
    },
}

/// The kernel's names of the softirq vectors, in their order; `None` beyond them.
#[must_use]
pub fn softirq_name(vec: u32) -> Option<&'static str> {
    const NAMES: [&str; 10] = [
        "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER",
        "RCU",
    ];
    NAMES.get(vec as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comms_are_cut_at_fifteen_bytes_and_at_nul() {
        assert_eq!(
            Comm::new("a-name-longer-than-fits").to_string(),
            "a-name-longer-t"
        );
        assert_eq!(Comm::from_bytes(b"ab\0cd").as_bytes(), b"ab");
        assert_eq!(Comm([b'x'; 16]).as_bytes().len(), 16);
    }
}
