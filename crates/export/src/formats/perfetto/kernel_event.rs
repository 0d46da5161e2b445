//! One kernel event as Perfetto's message of it: field by field, with the names of its tracepoint.

use super::functions::Functions;
use super::handler_exits::HandlerExits;
use super::stream::Texts;
use jitterscope_model::Message;
use jitterscope_model::{Comm, CpuId, EventKind, KernelAddr, KernelEvent, TaskRef};
use jitterscope_source::perfetto::{IPI_VECTORS, numbers::ftrace};

const LOCAL_TIMER: &str = "local_timer";

/// Writes messages.
pub(super) struct EventMessages<'a> {
    pub(super) functions: &'a mut Functions,
    pub(super) texts: &'a mut Texts,
    pub(super) exits: &'a mut HandlerExits,
}

impl EventMessages<'_> {
    /// Writes an event's own message to `m`. Returns its field in the event; `None` if Perfetto has no message for it.
    pub(super) fn write(&mut self, event: &KernelEvent, m: &mut Message) -> Option<u32> {
        Some(match &event.kind {
            EventKind::SchedSwitch {
                prev,
                prev_state,
                next,
            } => {
                task(m, prev, [1, 2, 3]);
                m.uint(4, *prev_state);
                task(m, next, [5, 6, 7]);
                ftrace::SCHED_SWITCH
            }
            EventKind::SchedWaking { task: of, target } => {
                task(m, of, [1, 2, 3]);
                m.int(4, 1);
                cpu(m, 5, *target);
                ftrace::SCHED_WAKING
            }
            EventKind::SchedMigrate { task: of, from, to } => {
                task(m, of, [1, 2, 3]);
                cpu(m, 4, *from);
                cpu(m, 5, *to);
                ftrace::SCHED_MIGRATE_TASK
            }
            EventKind::TaskNew {
                tid,
                comm,
                thread,
                into_cgroup,
            } => {
                m.int(1, *tid);
                name(m, 2, comm);
                m.uint(3, clone_flags(*thread, *into_cgroup));
                ftrace::TASK_NEWTASK
            }
            EventKind::TaskRename { tid, old, comm } => {
                m.int(1, *tid);
                name(m, 2, old);
                name(m, 3, comm);
                ftrace::TASK_RENAME
            }
            EventKind::CgroupAttach {
                hierarchy,
                tid,
                path,
            } => {
                m.uint(1, *hierarchy);
                m.int(3, *tid);
                m.text(7, path);
                ftrace::CGROUP_ATTACH_TASK
            }
            EventKind::Signal { tid, sig, code } => {
                m.int(1, *code);
                m.int(4, *tid);
                m.int(6, *sig);
                ftrace::SIGNAL_GENERATE
            }
            EventKind::IrqEntry { irq, action } => {
                m.uint(1, *irq);
                m.text(2, action);
                ftrace::IRQ_HANDLER_ENTRY
            }
            EventKind::IrqExit { irq } => {
                m.uint(1, *irq);
                if let Some(returned) = self.exits.returned(event.time) {
                    m.int(2, returned);
                }
                ftrace::IRQ_HANDLER_EXIT
            }
            EventKind::SoftirqEntry { vec } => {
                m.uint(1, *vec);
                ftrace::SOFTIRQ_ENTRY
            }
            EventKind::SoftirqExit { vec } => {
                m.uint(1, *vec);
                ftrace::SOFTIRQ_EXIT
            }
            EventKind::VectorEntry { vector } if **vector == *LOCAL_TIMER => {
                ftrace::LOCAL_TIMER_ENTRY
            }
            EventKind::VectorExit { vector } if **vector == *LOCAL_TIMER => {
                ftrace::LOCAL_TIMER_EXIT
            }
            EventKind::VectorEntry { vector } if IPI_VECTORS.contains(&&**vector) => {
                m.text(1, vector);
                ftrace::IPI_ENTRY
            }
            EventKind::VectorExit { vector } if IPI_VECTORS.contains(&&**vector) => {
                m.text(1, vector);
                ftrace::IPI_EXIT
            }
            // Addresses of kernel objects stay in the run: Perfetto pairs entry and exit by their thread.
            EventKind::WorkStart { function, .. } => {
                self.function(m, 2, *function);
                ftrace::WORKQUEUE_EXECUTE_START
            }
            EventKind::WorkEnd { .. } => ftrace::WORKQUEUE_EXECUTE_END,
            EventKind::WorkQueued {
                function,
                workqueue,
                target,
                ..
            } => {
                self.function(m, 2, *function);
                if let Some(target) = target {
                    cpu(m, 5, *target);
                }
                m.text(6, workqueue);
                ftrace::WORKQUEUE_QUEUE_WORK
            }
            EventKind::TimerEntry { function, .. } => {
                self.function(m, 3, *function);
                ftrace::TIMER_EXPIRE_ENTRY
            }
            EventKind::TimerExit { .. } => ftrace::TIMER_EXPIRE_EXIT,
            EventKind::HrtimerEntry { function, now, .. } => {
                m.uint(2, now.0);
                self.function(m, 3, *function);
                ftrace::HRTIMER_EXPIRE_ENTRY
            }
            EventKind::HrtimerExit { .. } => ftrace::HRTIMER_EXPIRE_EXIT,
            EventKind::CpuFrequency { target, khz } => {
                m.uint(1, *khz);
                m.uint(2, target.0);
                ftrace::CPU_FREQUENCY
            }
            EventKind::CpuIdle { state } => {
                m.uint(1, state.unwrap_or(IDLE_ENDS));
                m.uint(2, event.cpu.0);
                ftrace::CPU_IDLE
            }
            EventKind::StatRuntime { .. }
            | EventKind::VectorEntry { .. }
            | EventKind::VectorExit { .. }
            | EventKind::NmiHandler { .. }
            | EventKind::CsdEntry { .. }
            | EventKind::CsdExit { .. }
            | EventKind::CsdQueued { .. }
            | EventKind::IpiSendCpu { .. }
            | EventKind::IpiSendCpumask { .. }
            | EventKind::PageFault { .. }
            | EventKind::TlbFlush { .. }
            | EventKind::TickStop { .. }
            | EventKind::MachineCheck { .. } => return None,
        })
    }

    fn function(&mut self, m: &mut Message, field: u32, address: KernelAddr) {
        if let Some(number) = self.functions.number(address, self.texts) {
            m.uint(field, number);
        }
    }
}

/// The flags of clone3(2) for a new thread of the same process, and for a child that begins in a given control group.
fn clone_flags(thread: bool, into_cgroup: bool) -> u64 {
    u64::from(thread) << 16 | u64::from(into_cgroup) << 33
}
/// The state of `cpu_idle` when idle ends.
const IDLE_ENDS: u32 = u32::MAX;

/// A thread's name, id and priority.
fn task(m: &mut Message, task: &TaskRef, [comm, tid, prio]: [u32; 3]) {
    name(m, comm, &task.comm);
    m.int(tid, task.tid);
    m.int(prio, task.prio);
}

fn name(m: &mut Message, field: u32, comm: &Comm) {
    m.text(field, &String::from_utf8_lossy(comm.as_bytes()));
}

/// A CPU that a record names; "no such CPU" is left out.
fn cpu(m: &mut Message, field: u32, cpu: CpuId) {
    if let Ok(cpu) = i32::try_from(cpu.0) {
        m.int(field, cpu);
    }
}
