//! The fields to read for each kind of event, located once from the kernel's own formats.

use super::names::Names;
use crate::format::{BytesField, EventFormat, NumberField};
use jitterscope_model::{CpuId, EventKind, Name, Nanos, TaskRef};

/// CPU numbers from this on mean "no CPU": for unbound work queues the kernel writes `NR_CPUS` (at most 8192) or -1.
const NO_CPU: i64 = 8192;
/// The flag of clone(2) for a new thread of the same process.
const CLONE_THREAD: u64 = 0x0001_0000;
/// The flag of clone3(2) for a child that begins in a given control group.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
/// `power:cpu_idle`'s state when idle ends.
const IDLE_ENDS: u32 = u32::MAX;

/// A thread's fields; their names differ between events.
#[derive(Clone, Copy, Debug)]
struct TaskFields {
    comm: BytesField,
    tid: NumberField,
    prio: NumberField,
}

impl TaskFields {
    fn get(&self, event: &[u8]) -> TaskRef {
        TaskRef {
            tid: self.tid.i32(event),
            comm: self.comm.comm(event),
            prio: self.prio.i32(event),
        }
    }
}

/// One kind of event with the required fields, in the order of [`EventKind`].
#[derive(Clone, Debug)]
enum Plan {
    SchedSwitch {
        prev: TaskFields,
        prev_state: NumberField,
        next: TaskFields,
    },
    SchedWaking {
        task: TaskFields,
        target: NumberField,
    },
    SchedMigrate {
        task: TaskFields,
        from: NumberField,
        to: NumberField,
    },
    StatRuntime {
        tid: NumberField,
        runtime: NumberField,
    },
    TaskNew {
        tid: NumberField,
        comm: BytesField,
        flags: NumberField,
    },
    TaskRename {
        tid: NumberField,
        by: NumberField,
        old: BytesField,
        comm: BytesField,
    },
    CgroupAttach {
        hierarchy: NumberField,
        tid: NumberField,
        path: BytesField,
    },
    Signal {
        tid: NumberField,
        sig: NumberField,
        code: NumberField,
    },
    IrqEntry {
        irq: NumberField,
        action: BytesField,
    },
    IrqExit {
        irq: NumberField,
    },
    SoftirqEntry {
        vec: NumberField,
    },
    SoftirqExit {
        vec: NumberField,
    },
    VectorEntry {
        vector: Name,
    },
    VectorExit {
        vector: Name,
    },
    NmiHandler {
        handler: NumberField,
        delta: NumberField,
    },
    WorkStart {
        work: NumberField,
        function: NumberField,
    },
    WorkEnd {
        work: NumberField,
    },
    WorkQueued {
        work: NumberField,
        function: NumberField,
        queue: BytesField,
        target: NumberField,
    },
    TimerEntry {
        timer: NumberField,
        function: NumberField,
    },
    TimerExit {
        timer: NumberField,
    },
    HrtimerEntry {
        hrtimer: NumberField,
        function: NumberField,
        now: NumberField,
    },
    HrtimerExit {
        hrtimer: NumberField,
    },
    CsdEntry {
        function: NumberField,
        csd: NumberField,
    },
    CsdExit {
        function: NumberField,
        csd: NumberField,
    },
    CsdQueued {
        target: NumberField,
        function: NumberField,
        csd: NumberField,
        callsite: NumberField,
    },
    IpiSendCpu {
        target: NumberField,
        callsite: NumberField,
        callback: NumberField,
    },
    IpiSendCpumask {
        targets: BytesField,
        callsite: NumberField,
        callback: NumberField,
    },
    PageFault {
        user: bool,
        address: NumberField,
        ip: NumberField,
    },
    TlbFlush {
        reason: NumberField,
        pages: NumberField,
    },
    TickStop {
        success: NumberField,
        dependency: NumberField,
    },
    CpuFrequency {
        target: NumberField,
        khz: NumberField,
    },
    CpuIdle {
        state: NumberField,
    },
    MachineCheck {
        bank: NumberField,
    },
}

/// A plan, and the minimum length of its events in bytes.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    pub(super) length: usize,
    plan: Plan,
}

/// Locates fields, and notes the end of the furthest one.
struct Binder<'a> {
    format: &'a EventFormat,
    length: usize,
}

impl Binder<'_> {
    fn number(&mut self, name: &str) -> NumberField {
        let field = self.format.number(name);
        self.length = self.length.max(field.end());
        field
    }

    /// The first of several names that the kernel has.
    fn either(&mut self, names: &[&str]) -> NumberField {
        let name = names
            .iter()
            .find(|name| self.format.number(name).is_present());
        name.map_or_else(NumberField::default, |name| self.number(name))
    }

    fn bytes(&mut self, name: &str) -> BytesField {
        let field = self.format.bytes(name);
        self.length = self.length.max(field.end());
        field
    }

    fn task(&mut self, comm: &str, tid: &str, prio: &str) -> TaskFields {
        TaskFields {
            comm: self.bytes(comm),
            tid: self.number(tid),
            prio: self.number(prio),
        }
    }
}

impl Compiled {
    /// The plan for this event; `None` if we do not use it.
    pub(super) fn new(format: &EventFormat, names: &mut Names) -> Option<Compiled> {
        let mut b = Binder { format, length: 0 };
        let _ = (
            b.number("common_type"),
            b.number("common_pid"),
            b.number("common_flags"),
        );
        let plan = plan(&mut b, names)?;
        Some(Compiled {
            length: b.length,
            plan,
        })
    }
}

fn plan(b: &mut Binder<'_>, names: &mut Names) -> Option<Plan> {
    let format = b.format;
    Some(match (format.system(), format.name()) {
        ("sched", "sched_switch") => Plan::SchedSwitch {
            prev: b.task("prev_comm", "prev_pid", "prev_prio"),
            prev_state: b.number("prev_state"),
            next: b.task("next_comm", "next_pid", "next_prio"),
        },
        ("sched", "sched_waking") => Plan::SchedWaking {
            task: b.task("comm", "pid", "prio"),
            target: b.number("target_cpu"),
        },
        ("sched", "sched_migrate_task") => Plan::SchedMigrate {
            task: b.task("comm", "pid", "prio"),
            from: b.number("orig_cpu"),
            to: b.number("dest_cpu"),
        },
        ("sched", "sched_stat_runtime") => Plan::StatRuntime {
            tid: b.number("pid"),
            runtime: b.number("runtime"),
        },
        ("task", "task_newtask") => Plan::TaskNew {
            tid: b.number("pid"),
            comm: b.bytes("comm"),
            flags: b.number("clone_flags"),
        },
        ("task", "task_rename") => Plan::TaskRename {
            tid: b.number("pid"),
            by: b.number("common_pid"),
            old: b.bytes("oldcomm"),
            comm: b.bytes("newcomm"),
        },
        ("cgroup", "cgroup_attach_task") => Plan::CgroupAttach {
            hierarchy: b.number("dst_root"),
            tid: b.number("pid"),
            path: b.bytes("dst_path"),
        },
        ("signal", "signal_generate") => Plan::Signal {
            tid: b.number("pid"),
            sig: b.number("sig"),
            code: b.number("code"),
        },
        ("irq", "irq_handler_entry") => Plan::IrqEntry {
            irq: b.number("irq"),
            action: b.bytes("name"),
        },
        ("irq", "irq_handler_exit") => Plan::IrqExit {
            irq: b.number("irq"),
        },
        ("irq", "softirq_entry") => Plan::SoftirqEntry {
            vec: b.number("vec"),
        },
        ("irq", "softirq_exit") => Plan::SoftirqExit {
            vec: b.number("vec"),
        },
        ("irq_vectors", name) => {
            if let Some(vector) = name.strip_suffix("_entry") {
                Plan::VectorEntry {
                    vector: names.get(vector.as_bytes()),
                }
            } else {
                Plan::VectorExit {
                    vector: names.get(name.strip_suffix("_exit")?.as_bytes()),
                }
            }
        }
        ("nmi", "nmi_handler") => Plan::NmiHandler {
            handler: b.number("handler"),
            delta: b.number("delta_ns"),
        },
        ("workqueue", "workqueue_execute_start") => Plan::WorkStart {
            work: b.number("work"),
            function: b.number("function"),
        },
        ("workqueue", "workqueue_execute_end") => Plan::WorkEnd {
            work: b.number("work"),
        },
        ("workqueue", "workqueue_queue_work") => Plan::WorkQueued {
            work: b.number("work"),
            function: b.number("function"),
            queue: b.bytes("workqueue"),
            // `cpu` is the pool's CPU, where the work will run; `req_cpu` is only what the caller requested.
            target: b.either(&["cpu", "req_cpu"]),
        },
        ("timer", "timer_expire_entry") => Plan::TimerEntry {
            timer: b.number("timer"),
            function: b.number("function"),
        },
        ("timer", "timer_expire_exit") => Plan::TimerExit {
            timer: b.number("timer"),
        },
        ("timer", "hrtimer_expire_entry") => {
            let (hrtimer, function) = (b.number("hrtimer"), b.number("function"));
            Plan::HrtimerEntry {
                hrtimer,
                function,
                now: b.number("now"),
            }
        }
        ("timer", "hrtimer_expire_exit") => Plan::HrtimerExit {
            hrtimer: b.number("hrtimer"),
        },
        ("csd", "csd_function_entry") => Plan::CsdEntry {
            function: b.number("func"),
            csd: b.number("csd"),
        },
        ("csd", "csd_function_exit") => Plan::CsdExit {
            function: b.number("func"),
            csd: b.number("csd"),
        },
        ("csd", "csd_queue_cpu") => Plan::CsdQueued {
            target: b.number("cpu"),
            function: b.number("func"),
            csd: b.number("csd"),
            callsite: b.number("callsite"),
        },
        ("ipi", "ipi_send_cpu") => Plan::IpiSendCpu {
            target: b.number("cpu"),
            callsite: b.number("callsite"),
            callback: b.number("callback"),
        },
        ("ipi", "ipi_send_cpumask") => Plan::IpiSendCpumask {
            targets: b.bytes("cpumask"),
            callsite: b.number("callsite"),
            callback: b.number("callback"),
        },
        ("exceptions", name @ ("page_fault_user" | "page_fault_kernel")) => Plan::PageFault {
            user: name == "page_fault_user",
            address: b.number("address"),
            ip: b.number("ip"),
        },
        ("tlb", "tlb_flush") => Plan::TlbFlush {
            reason: b.number("reason"),
            pages: b.number("pages"),
        },
        ("timer", "tick_stop") => Plan::TickStop {
            success: b.number("success"),
            dependency: b.number("dependency"),
        },
        ("power", "cpu_frequency") => Plan::CpuFrequency {
            target: b.number("cpu_id"),
            khz: b.number("state"),
        },
        ("power", "cpu_idle") => Plan::CpuIdle {
            state: b.number("state"),
        },
        ("mce", "mce_record") => Plan::MachineCheck {
            bank: b.number("bank"),
        },
        _ => return None,
    })
}

/// A CPU number; `None` if it means "any".
fn cpu_or_any(cpu: i64) -> Option<CpuId> {
    (0..NO_CPU).contains(&cpu).then_some(CpuId(cpu as u32))
}

/// A CPU number. All numbers beyond any kernel's limit map to one, so that a foreign trace cannot create endless CPUs.
fn known_cpu(cpu: u32) -> CpuId {
    CpuId(if i64::from(cpu) < NO_CPU {
        cpu
    } else {
        u32::MAX
    })
}

impl Compiled {
    /// Reads an event of at least [`Compiled::length`] bytes.
    #[inline]
    pub(super) fn decode(&self, e: &[u8], names: &mut Names) -> EventKind {
        match &self.plan {
            Plan::SchedSwitch {
                prev,
                prev_state,
                next,
            } => EventKind::SchedSwitch {
                prev: prev.get(e),
                prev_state: prev_state.u64(e),
                next: next.get(e),
            },
            Plan::SchedWaking { task, target } => EventKind::SchedWaking {
                task: task.get(e),
                target: known_cpu(target.u32(e)),
            },
            Plan::SchedMigrate { task, from, to } => EventKind::SchedMigrate {
                task: task.get(e),
                from: known_cpu(from.u32(e)),
                to: known_cpu(to.u32(e)),
            },
            Plan::StatRuntime { tid, runtime } => EventKind::StatRuntime {
                tid: tid.i32(e),
                runtime_ns: runtime.u64(e),
            },
            Plan::TaskNew { tid, comm, flags } => EventKind::TaskNew {
                tid: tid.i32(e),
                comm: comm.comm(e),
                thread: flags.u64(e) & CLONE_THREAD != 0,
                into_cgroup: flags.u64(e) & CLONE_INTO_CGROUP != 0,
            },
            Plan::TaskRename { tid, by, old, comm } => EventKind::TaskRename {
                // Without the field, a task can only rename itself.
                tid: if tid.is_present() {
                    tid.i32(e)
                } else {
                    by.i32(e)
                },
                old: old.comm(e),
                comm: comm.comm(e),
            },
            Plan::CgroupAttach {
                hierarchy,
                tid,
                path,
            } => EventKind::CgroupAttach {
                hierarchy: hierarchy.u32(e),
                tid: tid.i32(e),
                path: names.get(path.text(e)),
            },
            Plan::Signal { tid, sig, code } => EventKind::Signal {
                tid: tid.i32(e),
                sig: sig.i32(e),
                code: code.i32(e),
            },
            Plan::IrqEntry { irq, action } => EventKind::IrqEntry {
                irq: irq.u32(e),
                action: names.get(action.text(e)),
            },
            Plan::IrqExit { irq } => EventKind::IrqExit { irq: irq.u32(e) },
            Plan::SoftirqEntry { vec } => EventKind::SoftirqEntry { vec: vec.u32(e) },
            Plan::SoftirqExit { vec } => EventKind::SoftirqExit { vec: vec.u32(e) },
            Plan::VectorEntry { vector } => EventKind::VectorEntry {
                vector: vector.clone(),
            },
            Plan::VectorExit { vector } => EventKind::VectorExit {
                vector: vector.clone(),
            },
            Plan::NmiHandler { handler, delta } => EventKind::NmiHandler {
                handler: handler.address(e),
                // Signed in the kernel; a negative length (a clock that stepped) counts as zero.
                delta_ns: delta.i64(e).max(0) as u64,
            },
            Plan::WorkStart { work, function } => EventKind::WorkStart {
                work: work.u64(e),
                function: function.address(e),
            },
            Plan::WorkEnd { work } => EventKind::WorkEnd { work: work.u64(e) },
            Plan::WorkQueued {
                work,
                function,
                queue,
                target,
            } => EventKind::WorkQueued {
                work: work.u64(e),
                function: function.address(e),
                workqueue: names.get(queue.text(e)),
                target: if target.is_present() {
                    cpu_or_any(target.i64(e))
                } else {
                    None
                },
            },
            Plan::TimerEntry { timer, function } => EventKind::TimerEntry {
                timer: timer.u64(e),
                function: function.address(e),
            },
            Plan::TimerExit { timer } => EventKind::TimerExit {
                timer: timer.u64(e),
            },
            Plan::HrtimerEntry {
                hrtimer,
                function,
                now,
            } => EventKind::HrtimerEntry {
                hrtimer: hrtimer.u64(e),
                function: function.address(e),
                now: Nanos(now.u64(e)),
            },
            Plan::HrtimerExit { hrtimer } => EventKind::HrtimerExit {
                hrtimer: hrtimer.u64(e),
            },
            Plan::CsdEntry { function, csd } => EventKind::CsdEntry {
                function: function.address(e),
                csd: csd.u64(e),
            },
            Plan::CsdExit { function, csd } => EventKind::CsdExit {
                function: function.address(e),
                csd: csd.u64(e),
            },
            Plan::CsdQueued {
                target,
                function,
                csd,
                callsite,
            } => EventKind::CsdQueued {
                target: known_cpu(target.u32(e)),
                function: function.address(e),
                csd: csd.u64(e),
                callsite: callsite.address(e),
            },
            Plan::IpiSendCpu {
                target,
                callsite,
                callback,
            } => EventKind::IpiSendCpu {
                target: known_cpu(target.u32(e)),
                callsite: callsite.address(e),
                callback: callback.address(e),
            },
            Plan::IpiSendCpumask {
                targets,
                callsite,
                callback,
            } => EventKind::IpiSendCpumask {
                targets: targets.bitmap(e),
                callsite: callsite.address(e),
                callback: callback.address(e),
            },
            Plan::PageFault { user, address, ip } => EventKind::PageFault {
                user: *user,
                address: address.u64(e),
                ip: ip.u64(e),
            },
            Plan::TlbFlush { reason, pages } => EventKind::TlbFlush {
                reason: reason.u32(e),
                pages: pages.i64(e),
            },
            Plan::TickStop {
                success,
                dependency,
            } => EventKind::TickStop {
                success: success.i64(e) != 0,
                dependency: dependency.u32(e),
            },
            Plan::CpuFrequency { target, khz } => EventKind::CpuFrequency {
                target: known_cpu(target.u32(e)),
                khz: khz.u32(e),
            },
            Plan::CpuIdle { state } => {
                let state = state.u32(e);
                EventKind::CpuIdle {
                    state: (state != IDLE_ENDS).then_some(state),
                }
            }
            Plan::MachineCheck { bank } => EventKind::MachineCheck { bank: bank.u32(e) },
        }
    }
}
