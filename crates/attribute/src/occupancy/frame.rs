//! Frames: what is open on a CPU, one inside the other.

use super::names::{CommId, NameId, NameTable};
use super::record::Record;
use jitterscope_model::Ticks;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(crate) enum Class {
    // The root of a stack: whose turn it is.
    /// A thread has the CPU.
    Turn,
    /// Between the last record of one thread and the first of another, with no switch recorded.
    Unrecorded,
    /// No record has said yet who has the CPU.
    NotSeen,
    /// Records were lost.
    Lost,
    // What belongs to a thread, and goes on with it when it comes back.
    /// A work item; subject: its function.
    Work,
    /// A softirq; key: its vector. With threaded interrupts it can be switched out.
    Softirq,
    /// The function of a high-resolution timer.
    HrtimerFunction,
    /// The function of a timer of the wheel.
    WheelFunction,
    /// A page fault, which has no exit record; key: 1 when user code faulted.
    Fault,
    /// A machine check, likewise; key: the bank.
    MachineCheck,
    // What belongs to the CPU, and cannot be switched out.
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
    /// An idle state; key: which, [`Record::IDLE_ENDS`] when it has been left and idle goes on.
    Idle,
}

impl Class {
    /// Whether it says whose turn it is.
    pub(crate) fn is_root(self) -> bool {
        matches!(
            self,
            Class::Turn | Class::Unrecorded | Class::NotSeen | Class::Lost
        )
    }

    /// Whether it goes on with its thread.
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

    /// Whether there is no exit record: it lasts until what must end it.
    pub(crate) fn is_endless(self) -> bool {
        matches!(self, Class::Fault | Class::MachineCheck)
    }

    /// A vector's interrupt. No two of them nest: they run with interrupts disabled.
    pub(crate) fn is_vector(self) -> bool {
        matches!(self, Class::LocalTimer | Class::Vector)
    }
}

/// How a frame ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It has not, as far as is known.
    Open,
    /// By its exit, or by what must end it.
    Closed,
    /// Its exit left no record: something outside of it ended, or goes on.
    Unseen,
}

/// No frame.
pub(crate) const NONE: u32 = u32::MAX;

/// One interval of activity on a CPU. Frames refer to each other by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Time of the record that opened it: before `start` when its thread was switched out meanwhile.
    pub(crate) opened: Ticks,
    /// From.
    pub(crate) start: Ticks,
    /// To; of an open one, to as far as anything is known.
    pub(crate) end: Ticks,
    /// Pairs it with its exit. Of a turn: who had the CPU before, see [`Frame::before`].
    pub(crate) key: u64,
    /// What it is named by. Of a turn: the state of who had the CPU before. Of time without an owner: who was seen
    /// at its end, see [`Frame::seen_at_end`].
    pub(crate) subject: u64,
    /// In whose time.
    pub(crate) tid: i32,
    /// The frame that it is nested in, [`NONE`] of a root.
    pub(crate) parent: u32,
    /// Of a turn: the thread's name when it began.
    pub(crate) comm: CommId,
    /// Of a turn: the thread's name when it was switched out; a program may have begun in between.
    pub(crate) end_comm: CommId,
    /// Of a turn: the kernel's priority; [`Frame::NO_PRIORITY`] where no record had it.
    pub(crate) prio: i16,
    /// Of a turn: that of its end, where it is known; the thread may have taken another class in between.
    pub(crate) end_prio: i16,
    pub(crate) class: Class,
    pub(crate) outcome: Outcome,
}

const _: () = assert!(size_of::<Frame>() <= 64);

/// Who had a CPU before a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Before {
    pub(crate) tid: i32,
    pub(crate) prio: i16,
    /// The kernel's low bits: 0 when it could have gone on.
    pub(crate) state: u16,
}

impl Frame {
    /// The kernel's priorities from here on are of the fair class; below 0 are those of the deadline class.
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

    /// Time without an owner.
    pub(crate) fn nobody(class: Class, at: Ticks) -> Frame {
        Frame::root(class, -1, at)
    }

    /// A thread is known to have the CPU, and no record says since when.
    pub(crate) fn inferred_turn(tid: i32, at: Ticks) -> Frame {
        Frame::root(Class::Turn, tid, at)
    }

    /// A switch gives the CPU to a thread.
    pub(crate) fn turn(switch: &Record, at: Ticks) -> Frame {
        let (prev, next) = (switch.prev(), switch.next());
        Frame {
            key: u64::from(prev.tid as u32) | u64::from(prev.prio as u16) << 32,
            subject: u64::from(switch.prev_state()),
            comm: next.comm,
            prio: next.prio,
            ..Frame::root(Class::Turn, next.tid, at)
        }
    }

    /// A work item that a worker had under way.
    pub(crate) fn item(tid: i32, work: u64, function: u64, begun: Ticks) -> Frame {
        Frame {
            key: work,
            subject: function,
            ..Frame::root(Class::Work, tid, begun)
        }
    }

    /// What a record opens inside another frame.
    pub(crate) fn inside(class: Class, record: &Record, at: Ticks) -> Frame {
        Frame {
            key: record.key,
            subject: record.subject,
            ..Frame::root(class, record.tid, at)
        }
    }

    /// Who had the CPU before this turn; `None` when no switch says.
    pub(crate) fn before(&self) -> Option<Before> {
        (self.class == Class::Turn && self.subject <= u64::from(u16::MAX)).then_some(Before {
            tid: self.key as u32 as i32,
            prio: (self.key >> 32) as u16 as i16,
            state: self.subject as u16,
        })
    }

    /// The thread that had the CPU at the end of time without an owner; `None` of all other frames.
    pub(crate) fn seen_at_end(&self) -> Option<i32> {
        let is_known = self.class == Class::Unrecorded && self.subject <= u64::from(u32::MAX);
        is_known.then_some(self.subject as u32 as i32)
    }

    /// The thread's name: at the end of its turn where that is known, for it may have begun another
    /// program in the middle.
    pub(crate) fn named(&self) -> CommId {
        if self.end_comm == CommId::UNKNOWN {
            self.comm
        } else {
            self.end_comm
        }
    }

    /// The priority of a turn's thread: as urgent as it was at either end. A thread that became more urgent
    /// in the middle went on by that, and one that became less had the CPU by what it was before.
    pub(crate) fn priority(&self) -> i16 {
        match (self.prio, self.end_prio) {
            (known, Frame::NO_PRIORITY) | (Frame::NO_PRIORITY, known) => known,
            (begun, ended) => begun.min(ended),
        }
    }

    /// Whether an exit with these numbers is this frame's.
    pub(crate) fn is_closed_by(&self, class: Class, record: &Record) -> bool {
        self.class == class
            && match class {
                Class::LocalTimer => true,
                // A descriptor may carry one function after the other.
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
