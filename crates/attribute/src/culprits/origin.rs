//! What a culprit's names follow from, in numbers: the same few come again and again, and are named once.

use super::{Naming, is_seen, told_trigger};
use crate::occupancy::{Class, CommId, Frame};
use crate::senders::Trigger;
use jitterscope_model::Verdict;

/// As long as names stay what they are, equal origins have equal culprits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    /// Time that is nobody's.
    Verdict(Verdict),
    /// A thread's turn.
    Turn {
        tid: i32,
        comm: CommId,
        prio: i16,
        waker: Option<Trigger>,
    },
    /// Any other frame, by its numbers.
    Frame {
        class: Class,
        key: u64,
        subject: u64,
        trigger: Option<Trigger>,
    },
}

impl Origin {
    /// That of a frame; `None` where its culprit follows from more than a few numbers.
    pub(crate) fn of(frame: &Frame, naming: &Naming<'_>) -> Option<Origin> {
        match frame.class {
            _ if !is_seen(frame) => None,
            Class::Turn => {
                let waker = told_trigger(frame, naming);
                Some(Origin::Turn {
                    tid: frame.tid,
                    comm: frame.named(),
                    prio: frame.priority(),
                    waker,
                })
            }
            // From its workqueue, which is looked for; from the victim; from the CPU.
            Class::Work | Class::Unrecorded | Class::NotSeen => None,
            Class::Lost
            | Class::Softirq
            | Class::HrtimerFunction
            | Class::WheelFunction
            | Class::Fault
            | Class::MachineCheck
            | Class::LocalTimer
            | Class::Vector
            | Class::Call
            | Class::Irq
            | Class::Nmi
            | Class::Idle => {
                let Frame {
                    class,
                    key,
                    subject,
                    ..
                } = *frame;
                Some(Origin::Frame {
                    class,
                    key,
                    subject,
                    trigger: told_trigger(frame, naming),
                })
            }
        }
    }
}
