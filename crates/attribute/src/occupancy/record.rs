//! A kernel event in 32 bytes: the data that a CPU's machine needs.

use super::names::{CommId, NameId, NameTable};
use jitterscope_model::{EventKind, ExecutionContext, KernelEvent, TaskRef, Ticks};

/// The kind of a record, reduced to what affects the CPU's stack. [`Record::key`] pairs an entry with its exit;
/// [`Record::subject`] is used for names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RecordKind {
    /// `tid` leaves; see [`Record::next`], [`Record::prev`].
    Switch,
    /// Key: the vector's name.
    TimerEntry,
    TimerExit,
    /// Key: the vector's name.
    VectorEntry,
    VectorExit,
    /// Key: the interrupt's number; subject: its name.
    IrqEntry,
    IrqExit,
    /// Key: the vector.
    SoftirqEntry,
    SoftirqExit,
    /// Key: the timer; subject: its function.
    HrtimerEntry,
    HrtimerExit,
    /// Key: the timer; subject: its function.
    WheelEntry,
    WheelExit,
    /// Key: the descriptor; subject: the function.
    CallEntry,
    CallExit,
    /// Key: the item; subject: its function.
    WorkStart,
    WorkEnd,
    /// Key: the handler; subject: how long it ran, in nanoseconds.
    Nmi,
    /// Key: 1 if user code faulted.
    Fault,
    /// Key: the bank.
    MachineCheck,
    /// Key: the state, or [`Record::IDLE_ENDS`].
    Idle,
    /// Key: the charged thread; subject: its run time, in nanoseconds.
    Charge,
    /// It may be written in the middle of a switch, when the named thread has already left.
    TlbFlush,
    /// Opens and closes no frame.
    Point,
}

/// A thread in a switch record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) tid: i32,
    pub(crate) comm: CommId,
    pub(crate) prio: i16,
}

/// A kernel event of one CPU, without its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) time: Ticks,
    pub(crate) key: u64,
    pub(crate) subject: u64,
    /// The thread that had the CPU when it was written; for a switch, the one that leaves.
    pub(crate) tid: i32,
    small: u16,
    pub(crate) kind: RecordKind,
    pub(crate) context: ExecutionContext,
}

const _: () = assert!(size_of::<Record>() == 32);

impl Record {
    /// The key of a record that an idle state was left.
    pub(crate) const IDLE_ENDS: u64 = u64::MAX;

    pub(crate) fn new(event: &KernelEvent, names: &mut NameTable) -> Record {
        use RecordKind as Kind;
        let mut small = 0;
        let mut tid = event.tid;
        let (kind, key, subject) = match &event.kind {
            EventKind::SchedSwitch {
                prev,
                prev_state,
                next,
            } => {
                tid = prev.tid;
                small = (*prev_state & 0xffff) as u16;
                let prev_comm = names.comm_id(prev.comm).0;
                let prios = u64::from(frame_priority(prev) as u16)
                    | u64::from(frame_priority(next) as u16) << 16;
                let next_is = pack(next.tid, names.comm_id(next.comm));
                (Kind::Switch, next_is, prios | u64::from(prev_comm) << 32)
            }
            EventKind::VectorEntry { vector } => (
                or_timer(vector, Kind::TimerEntry, Kind::VectorEntry),
                name(names, vector),
                0,
            ),
            EventKind::VectorExit { vector } => (
                or_timer(vector, Kind::TimerExit, Kind::VectorExit),
                name(names, vector),
                0,
            ),
            EventKind::IrqEntry { irq, action } => {
                (Kind::IrqEntry, u64::from(*irq), name(names, action))
            }
            EventKind::IrqExit { irq } => (Kind::IrqExit, u64::from(*irq), 0),
            EventKind::SoftirqEntry { vec } => (Kind::SoftirqEntry, u64::from(*vec), 0),
            EventKind::SoftirqExit { vec } => (Kind::SoftirqExit, u64::from(*vec), 0),
            EventKind::HrtimerEntry {
                hrtimer, function, ..
            } => (Kind::HrtimerEntry, *hrtimer, function.0),
            EventKind::HrtimerExit { hrtimer } => (Kind::HrtimerExit, *hrtimer, 0),
            EventKind::TimerEntry { timer, function } => (Kind::WheelEntry, *timer, function.0),
            EventKind::TimerExit { timer } => (Kind::WheelExit, *timer, 0),
            EventKind::CsdEntry { function, csd } => (Kind::CallEntry, *csd, function.0),
            EventKind::CsdExit { function, csd } => (Kind::CallExit, *csd, function.0),
            EventKind::WorkStart { work, function } => (Kind::WorkStart, *work, function.0),
            EventKind::WorkEnd { work } => (Kind::WorkEnd, *work, 0),
            EventKind::NmiHandler { handler, delta_ns } => (Kind::Nmi, handler.0, *delta_ns),
            EventKind::PageFault { user, .. } => (Kind::Fault, u64::from(*user), 0),
            EventKind::MachineCheck { bank } => (Kind::MachineCheck, u64::from(*bank), 0),
            EventKind::CpuIdle { state } => {
                (Kind::Idle, state.map_or(Record::IDLE_ENDS, u64::from), 0)
            }
            EventKind::StatRuntime { tid, runtime_ns } => {
                (Kind::Charge, *tid as u32 as u64, *runtime_ns)
            }
            EventKind::TlbFlush { .. } => (Kind::TlbFlush, 0, 0),
            EventKind::SchedWaking { .. }
            | EventKind::SchedMigrate { .. }
            | EventKind::TaskNew { .. }
            | EventKind::TaskRename { .. }
            | EventKind::CgroupAttach { .. }
            | EventKind::Signal { .. }
            | EventKind::WorkQueued { .. }
            | EventKind::CsdQueued { .. }
            | EventKind::IpiSendCpu { .. }
            | EventKind::IpiSendCpumask { .. }
            | EventKind::TickStop { .. }
            | EventKind::CpuFrequency { .. } => (Kind::Point, 0, 0),
        };
        Record {
            time: event.time,
            key,
            subject,
            tid,
            small,
            kind,
            context: event.context,
        }
    }

    /// For a switch: the thread that leaves the CPU.
    pub(crate) fn prev(&self) -> Task {
        Task {
            tid: self.tid,
            comm: CommId((self.subject >> 32) as u32),
            prio: self.subject as u16 as i16,
        }
    }

    /// For a switch: its state, the kernel's low bits.
    pub(crate) fn prev_state(&self) -> u16 {
        self.small
    }

    /// For a switch: the thread that gets the CPU.
    pub(crate) fn next(&self) -> Task {
        let (tid, comm) = (self.key as u32 as i32, CommId((self.key >> 32) as u32));
        Task {
            tid,
            comm,
            prio: (self.subject >> 16) as u16 as i16,
        }
    }

    /// For a charge: the charged thread.
    pub(crate) fn charged(&self) -> i32 {
        self.key as u32 as i32
    }
}

/// A thread's priority, as frames store it.
pub(crate) fn frame_priority(task: &TaskRef) -> i16 {
    task.prio.clamp(i16::MIN.into(), i16::MAX.into()) as i16
}

fn pack(tid: i32, comm: CommId) -> u64 {
    u64::from(tid as u32) | u64::from(comm.0) << 32
}

fn name(names: &mut NameTable, name: &jitterscope_model::Name) -> u64 {
    let NameId(id) = names.name_id(name);
    u64::from(id)
}

/// The local timer's vector has its own kind, because its functions provide its name.
fn or_timer(vector: &str, timer: RecordKind, other: RecordKind) -> RecordKind {
    if vector == "local_timer" {
        timer
    } else {
        other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Comm, CpuId};

    #[test]
    fn a_switch_keeps_both_threads() {
        let mut names = NameTable::default();
        let prev = TaskRef {
            tid: 4_194_303,
            comm: Comm::new("deadline"),
            prio: -1,
        };
        let next = TaskRef {
            tid: 17,
            comm: Comm::new("fair"),
            prio: 139,
        };
        let kind = EventKind::SchedSwitch {
            prev,
            prev_state: 0x102,
            next,
        };
        let context = ExecutionContext::Thread;
        let event = KernelEvent {
            time: Ticks(9),
            cpu: CpuId(1),
            tid: 5,
            context,
            kind,
        };
        let record = Record::new(&event, &mut names);
        let fields = |task: Task| (task.tid, names.comm(task.comm), i32::from(task.prio));
        assert_eq!(
            fields(record.prev()),
            (prev.tid, Some(prev.comm), prev.prio)
        );
        assert_eq!(
            fields(record.next()),
            (next.tid, Some(next.comm), next.prio)
        );
        assert_eq!(record.prev_state(), 0x102);
    }
}
