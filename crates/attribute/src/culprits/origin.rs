//! The numbers that determine a culprit's names. The same few combinations recur, and are named once.

use super::{Naming, is_seen, known_trigger};
use crate::occupancy::{Class, CommId, Frame};
use crate::senders::Trigger;
use jitterscope_model::Verdict;

/// While names do not change, equal origins have equal culprits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    /// A verdict without a thread.
    Verdict(Verdict),
    Turn {
        tid: i32,
        comm: CommId,
        was: Option<CommId>,
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
    /// The origin of a frame; `None` if more than a few numbers determine its culprit.
    pub(crate) fn of(frame: &Frame, naming: &Naming<'_>) -> Option<Origin> {
        match frame.class {
            _ if !is_seen(frame) => None,
            Class::Turn => {
                let waker = known_trigger(frame, naming);
                Some(Origin::Turn {
                    tid: frame.tid,
                    comm: frame.named(),
                    was: frame.was(),
                    prio: frame.priority(),
                    waker,
                })
            }
            // It depends on its workqueue, which is looked up; on the victim; on the CPU; on the window.
            Class::Work | Class::Unrecorded | Class::NotSeen | Class::Throttled => None,
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
                    trigger: known_trigger(frame, naming),
                })
            }
        }
    }
}
