//! Frames: nested intervals of activity on a CPU.

use super::names::{CommId, NameId, NameTable};
use super::record::Record;
use jitterscope_model::Ticks;

/// The class of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(crate) enum Class {
    // The roots of a stack: these say whose turn it is.
    /// A thread has the CPU.
    Turn,
    /// Between the last record of one thread and the first of another, without a recorded switch.
    Unrecorded,
    /// Before any record that shows who has the CPU.
    NotSeen,
    Lost,
    /// A thread's turn, or idle time, in which a quota kept the victim from running. Only windows have it. Key: the
    /// index of the quota.
    Throttled,
    // Frames that belong to a thread, and continue when it comes back.
    /// A work item; subject: its function.
    Work,
    /// A softirq; key: its vector. With threaded interrupts it can be switched out.
    Softirq,
    /// The function of a high-resolution timer.
    HrtimerFunction,
    /// The function of a timer of the wheel.
    WheelFunction,
    /// A page fault, which has no exit record; key: 1 if user code faulted.
    Fault,
    /// A machine check, also without an exit record; key: the bank.
    MachineCheck,
    // Frames that belong to the CPU, and cannot be switched out.
    /// The local timer's interrupt.
    LocalTimer,
    /// Another vector; key: its name.
    Vector,
    /// A function called by another CPU.
    Call,
    /// A device's handler; subject: its name.
    Irq,
    /// A non-maskable interrupt; key: the handler.
    Nmi,
    /// An idle state; key: its number, or [`Record::IDLE_ENDS`] if it has been left and idle continues.
    Idle,
}

impl Class {
    /// Whether it is a root, which says whose turn it is.
    pub(crate) fn is_root(self) -> bool {
        matches!(
            self,
            Class::Turn | Class::Unrecorded | Class::NotSeen | Class::Lost | Class::Throttled
        )
    }

    /// Whether it belongs to a thread, and continues with it.
    pub(crate) fn is_of_thread(self) -> bool {
        matches!(
            self,
            Class::Work
                | Class::Softirq
                | Class::HrtimerFunction
                | Class::WheelFunction
                | Class::Fault
                | Class::MachineCheck
        )
    }

    /// Whether it has no exit record, and lasts until another record must end it.
    pub(crate) fn is_endless(self) -> bool {
        matches!(self, Class::Fault | Class::MachineCheck)
    }

    /// Whether it is a vector's interrupt. These never nest, because they run with interrupts disabled.
    pub(crate) fn is_vector(self) -> bool {
        matches!(self, Class::LocalTimer | Class::Vector)
    }
}

/// How a frame ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Its end is not known yet.
    Open,
    /// By its exit record, or by a record that must end it.
    Closed,
    /// Its exit left no record: a frame outside of it ended, or continues.
    Unseen,
}

pub(crate) const NONE: u32 = u32::MAX;

/// One interval of activity on a CPU. Frames refer to each other by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Time of the record that opened it: before `start` if its thread was switched out meanwhile.
    pub(crate) opened: Ticks,
    pub(crate) start: Ticks,
    /// The end; for an open frame, the last known time.
    pub(crate) end: Ticks,
    /// Pairs it with its exit. For a turn: the previous thread, see [`Frame::before`].
    pub(crate) key: u64,
    /// What it is named by. For a turn: the state in which the previous thread left. For time without a known thread:
    /// the thread that was seen at its end, see [`Frame::seen_at_end`].
    pub(crate) subject: u64,
    /// The thread in whose time it is.
    pub(crate) tid: i32,
    /// The frame that it is nested in; [`NONE`] for a root.
    pub(crate) parent: u32,
    /// For a turn: the thread's name when it began.
    pub(crate) comm: CommId,
    /// For a turn: the thread's name when it was switched out; it may have executed another program in between.
    pub(crate) end_comm: CommId,
    /// For a turn: the kernel's priority; [`Frame::NO_PRIORITY`] if no record had it.
    pub(crate) prio: i16,
    /// For a turn: the priority at its end, if known; the thread may have changed its class in between.
    pub(crate) end_prio: i16,
    pub(crate) class: Class,
    pub(crate) outcome: Outcome,
}

const _: () = assert!(size_of::<Frame>() <= 64);

/// The thread that had a CPU before a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Before {
    pub(crate) tid: i32,
    pub(crate) prio: i16,
    /// The kernel's low state bits, 0 if it was still runnable; plus [`Before::BY_ITSELF`].
    pub(crate) state: u16,
}

impl Before {
    /// No interrupt can have made it leave: the last one in its turn ended well before. No kernel state uses this bit.
    pub(crate) const BY_ITSELF: u16 = 0x8000;
}

impl Frame {
    /// The kernel's priorities from this on are of the fair class; those below 0 are of the deadline class.
    pub(crate) const FIRST_FAIR: i16 = 100;
    /// No record had the priority.
    pub(crate) const NO_PRIORITY: i16 = i16::MIN;

    fn root(class: Class, tid: i32, at: Ticks) -> Frame {
        Frame {
            opened: at,
            start: at,
            end: at,
            key: u64::MAX,
            subject: u64::MAX,
            tid,
            parent: NONE,
            comm: CommId::UNKNOWN,
            end_comm: CommId::UNKNOWN,
            prio: Frame::NO_PRIORITY,
            end_prio: Frame::NO_PRIORITY,
            class,
            outcome: Outcome::Open,
        }
    }

    /// Time without a known thread.
    pub(crate) fn nobody(class: Class, at: Ticks) -> Frame {
        Frame::root(class, -1, at)
    }

    /// The turn of a thread that is known to have the CPU, without a record of its beginning.
    pub(crate) fn inferred_turn(tid: i32, at: Ticks) -> Frame {
        Frame::root(Class::Turn, tid, at)
    }

    /// A switch gives the CPU to a thread; `by_itself`: no timer interrupted the previous thread then.
    pub(crate) fn turn(switch: &Record, by_itself: bool, at: Ticks) -> Frame {
        let (prev, next) = (switch.prev(), switch.next());
        let state = switch.prev_state() & !Before::BY_ITSELF;
        let by_itself = if by_itself { Before::BY_ITSELF } else { 0 };
        Frame {
            key: u64::from(prev.tid as u32) | u64::from(prev.prio as u16) << 32,
            subject: u64::from(state | by_itself),
            comm: next.comm,
            prio: next.prio,
            ..Frame::root(Class::Turn, next.tid, at)
        }
    }

    /// A work item that a worker had in progress.
    pub(crate) fn item(tid: i32, work: u64, function: u64, begun: Ticks) -> Frame {
        Frame {
            key: work,
            subject: function,
            ..Frame::root(Class::Work, tid, begun)
        }
    }

    /// A frame that a record opens inside another one.
    pub(crate) fn inside(class: Class, record: &Record, at: Ticks) -> Frame {
        Frame {
            key: record.key,
            subject: record.subject,
            ..Frame::root(class, record.tid, at)
        }
    }

    /// The thread that had the CPU before this turn; `None` if no switch shows it.
    pub(crate) fn before(&self) -> Option<Before> {
        (self.class == Class::Turn && self.subject <= u64::from(u16::MAX)).then_some(Before {
            tid: self.key as u32 as i32,
            prio: (self.key >> 32) as u16 as i16,
            state: self.subject as u16,
        })
    }

    /// The thread that had the CPU at the end of time without a known thread; `None` for all other frames.
    pub(crate) fn seen_at_end(&self) -> Option<i32> {
        let is_known = self.class == Class::Unrecorded && self.subject <= u64::from(u32::MAX);
        is_known.then_some(self.subject as u32 as i32)
    }

    /// The thread's name: the one at the end of its turn if known, because it may have executed another program in
    /// between.
    pub(crate) fn named(&self) -> CommId {
        if self.end_comm == CommId::UNKNOWN {
            self.comm
        } else {
            self.end_comm
        }
    }

    /// The name of a turn's thread at its beginning, if it was renamed and no record tells when.
    pub(crate) fn was(&self) -> Option<CommId> {
        let known = self.comm != CommId::UNKNOWN && self.end_comm != CommId::UNKNOWN;
        (known && self.comm != self.end_comm).then_some(self.comm)
    }

    /// The priority of a turn's thread: the more urgent one of its beginning and end. A thread that became more urgent
    /// kept the CPU because of that, and one that became less urgent had the CPU because of its earlier priority.
    pub(crate) fn priority(&self) -> i16 {
        match (self.prio, self.end_prio) {
            (known, Frame::NO_PRIORITY) | (Frame::NO_PRIORITY, known) => known,
            (begun, ended) => begun.min(ended),
        }
    }

    /// Whether an exit with these numbers closes this frame.
    pub(crate) fn is_closed_by(&self, class: Class, record: &Record) -> bool {
        self.class == class
            && match class {
                Class::LocalTimer => true,
                // A descriptor can be reused for another function.
                Class::Call => self.key == record.key && self.subject == record.subject,
                _ => self.key == record.key,
            }
    }

    /// Whether it is the interrupt of this vector.
    pub(crate) fn is_vector_of(&self, names: &NameTable, vector: &str) -> bool {
        let name = |id| u32::try_from(id).ok().and_then(|id| names.name(NameId(id)));
        self.class == Class::Vector && name(self.key).is_some_and(|name| &**name == vector)
    }

    /// Whether it is a thread's turn.
    pub(crate) fn is_turn(&self) -> bool {
        self.class == Class::Turn
    }

    /// From first entry to last exit.
    pub(crate) fn gross(&self) -> Ticks {
        self.end.since(self.start)
    }
}
