//! One decoded tracepoint record.

use crate::{CpuId, ExecutionContext, Nanos, Ticks};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A short text that many records share: the handler of an interrupt, a workqueue, an interrupt vector.
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

    /// The name after a conversion to text and back: invalid bytes are replaced. Equal names stay equal.
    #[must_use]
    pub fn as_read(&self) -> Comm {
        Comm::new(&String::from_utf8_lossy(self.as_bytes()))
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0[0] == 0
    }

    /// Its bytes without padding.
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

/// A kernel text address. Only the symbol table of the same boot can name it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct KernelAddr(pub u64);

/// A task, as the scheduler's records name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskRef {
    /// Kernel thread id; 0 is the idle task of its CPU.
    pub tid: i32,
    pub comm: Comm,
    /// Kernel priority: below 0 deadline, 0 to 99 real-time (lower is more urgent), 100 to 139 fair.
    pub prio: i32,
}

/// One decoded tracepoint record.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelEvent {
    /// Timestamp, on the probe's clock.
    pub time: Ticks,
    /// The CPU that recorded it.
    pub cpu: CpuId,
    /// The task that was current there.
    pub tid: i32,
    /// Whether that task caused the record, or an interruption of it.
    pub context: ExecutionContext,
    pub kind: EventKind,
}

/// The content of a record. Names follow the tracepoints; `hrtimer`, `timer`, `work` and `csd` are the addresses of
/// kernel objects, which pair an entry with its exit and a sender with a receiver.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// `sched:sched_switch`.
    SchedSwitch {
        /// The task that leaves the CPU.
        prev: TaskRef,
        /// Its state: 0 runnable (preempted), else the kernel's sleep bits.
        prev_state: u64,
        /// The task that gets the CPU.
        next: TaskRef,
    },
    /// `sched:sched_waking`: the current task wakes another.
    SchedWaking {
        task: TaskRef,
        /// The CPU that it last ran on, where it usually wakes.
        target: CpuId,
    },
    /// `sched:sched_migrate_task`.
    SchedMigrate {
        task: TaskRef,
        from: CpuId,
        to: CpuId,
    },
    /// `sched:sched_stat_runtime`: charges a task for the time since its last charge or its last switch to the CPU.
    StatRuntime {
        tid: i32,
        /// Its run time, nanoseconds of the scheduler's clock.
        runtime_ns: u64,
    },
    /// `task:task_newtask`: the current task creates another.
    TaskNew {
        tid: i32,
        /// Its name, which it has from its creator.
        comm: Comm,
        /// Whether it is a thread of the same process, and not a new process.
        thread: bool,
        /// Whether it begins in another control group than its creator's (`CLONE_INTO_CGROUP`).
        into_cgroup: bool,
    },
    /// `cgroup:cgroup_attach_task`: a task, or a whole process, moves to another control group. A task that begins in
    /// another group than its creator's has no such record.
    CgroupAttach {
        /// The number of the hierarchy, as in `/proc/PID/cgroup`: 0 for the unified one.
        hierarchy: u32,
        /// The task, or the first thread of the process.
        tid: i32,
        /// The path of the group.
        path: Name,
    },
    /// `task:task_rename`: a task gets another name, by exec or explicitly.
    TaskRename { tid: i32, old: Comm, comm: Comm },
    /// `signal:signal_generate`: the current task, or an interruption of it, sends a signal.
    Signal {
        /// The target thread; for a whole process its first thread, whose id is the process's id.
        tid: i32,
        sig: i32,
        /// The reason: `si_code` of sigaction(2).
        code: i32,
    },
    /// `irq:irq_handler_entry`: the handler of a device.
    IrqEntry {
        irq: u32,
        /// The handler's registered name.
        action: Name,
    },
    /// `irq:irq_handler_exit`.
    IrqExit { irq: u32 },
    /// `irq:softirq_entry`.
    SoftirqEntry {
        /// Softirq vector, see [`softirq_name`].
        vec: u32,
    },
    /// `irq:softirq_exit`.
    SoftirqExit { vec: u32 },
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
    /// `nmi:nmi_handler`, recorded when the handler ends.
    NmiHandler {
        handler: KernelAddr,
        /// Its run time, nanoseconds.
        delta_ns: u64,
    },
    /// `workqueue:workqueue_execute_start`.
    WorkStart { work: u64, function: KernelAddr },
    /// `workqueue:workqueue_execute_end`.
    WorkEnd { work: u64 },
    /// `workqueue:workqueue_queue_work`: the current task queues work.
    WorkQueued {
        work: u64,
        function: KernelAddr,
        workqueue: Name,
        /// The requested CPU; `None` for any.
        target: Option<CpuId>,
    },
    /// `timer:timer_expire_entry`.
    TimerEntry { timer: u64, function: KernelAddr },
    /// `timer:timer_expire_exit`.
    TimerExit { timer: u64 },
    /// `timer:hrtimer_expire_entry`.
    HrtimerEntry {
        hrtimer: u64,
        function: KernelAddr,
        /// The time on the timer's own clock when its interrupt came, not when it was due.
        now: Nanos,
    },
    /// `timer:hrtimer_expire_exit`.
    HrtimerExit { hrtimer: u64 },
    /// `csd:csd_function_entry`: a function called by another CPU.
    CsdEntry {
        function: KernelAddr,
        /// The call's descriptor.
        csd: u64,
    },
    /// `csd:csd_function_exit`.
    CsdExit {
        function: KernelAddr,
        /// The call's descriptor.
        csd: u64,
    },
    /// `csd:csd_queue_cpu`: the current task calls a function on another CPU.
    CsdQueued {
        target: CpuId,
        function: KernelAddr,
        /// The call's descriptor.
        csd: u64,
        /// The calling address in the kernel.
        callsite: KernelAddr,
    },
    /// `ipi:ipi_send_cpu`: the current task interrupts one CPU.
    IpiSendCpu {
        target: CpuId,
        /// The calling address in the kernel.
        callsite: KernelAddr,
        /// The function that will run; 0 for a reschedule.
        callback: KernelAddr,
    },
    /// `ipi:ipi_send_cpumask`: the current task interrupts several CPUs.
    IpiSendCpumask {
        /// The interrupted CPUs below 64 (bit n is CPU n).
        targets: u64,
        /// The calling address in the kernel.
        callsite: KernelAddr,
        /// The function that will run.
        callback: KernelAddr,
    },
    /// `exceptions:page_fault_user` and `page_fault_kernel`. There is no exit record.
    PageFault {
        /// Whether user code faulted.
        user: bool,
        /// The accessed address.
        address: u64,
        /// The instruction's address.
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
        /// What prevented it: the kernel's `TICK_DEP_MASK_*` bits.
        dependency: u32,
    },
    /// `power:cpu_frequency`.
    CpuFrequency {
        /// The CPU whose frequency changed.
        target: CpuId,
        /// The new frequency in kHz.
        khz: u32,
    },
    /// `power:cpu_idle`; `None` when idle ends.
    CpuIdle {
        /// The idle state entered.
        state: Option<u32>,
    },
    /// `mce:mce_record`.
    MachineCheck {
        /// The bank that reported it.
        bank: u32,
    },
}

/// The kernel's names of the softirq vectors, in order; `None` for higher numbers.
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
