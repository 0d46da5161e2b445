//! The effect of each kind of record on a CPU's stack, in one look-up.

use super::frame::Class;
use super::record::RecordKind;

/// The effect of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Another thread gets the CPU.
    Switch,
    Open(Class),
    Close(Class),
    /// The frame of an exception replaces the previous one.
    Replace(Class),
    /// A handler has just ended; the record states its length.
    Nmi,
    /// The idle state changes.
    Idle,
    /// The scheduler states how long a thread has run.
    Charge,
    /// Nothing begins or ends.
    Point,
}

/// The class of a record beside the edges of a stall, which decides the class of the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    Switch,
    /// The entry of a hardware interrupt.
    InterruptEntry,
    SoftirqEntry,
    /// The exit of an interrupt or of a softirq.
    InterruptExit,
    Other,
}

impl RecordKind {
    /// Its effect on the stack.
    pub(crate) fn effect(self) -> Effect {
        match self {
            RecordKind::Switch => Effect::Switch,
            RecordKind::TimerEntry => Effect::Open(Class::LocalTimer),
            RecordKind::TimerExit => Effect::Close(Class::LocalTimer),
            RecordKind::VectorEntry => Effect::Open(Class::Vector),
            RecordKind::VectorExit => Effect::Close(Class::Vector),
            RecordKind::IrqEntry => Effect::Open(Class::Irq),
            RecordKind::IrqExit => Effect::Close(Class::Irq),
            RecordKind::SoftirqEntry => Effect::Open(Class::Softirq),
            RecordKind::SoftirqExit => Effect::Close(Class::Softirq),
            RecordKind::HrtimerEntry => Effect::Open(Class::HrtimerFunction),
            RecordKind::HrtimerExit => Effect::Close(Class::HrtimerFunction),
            RecordKind::WheelEntry => Effect::Open(Class::WheelFunction),
            RecordKind::WheelExit => Effect::Close(Class::WheelFunction),
            RecordKind::CallEntry => Effect::Open(Class::Call),
            RecordKind::CallExit => Effect::Close(Class::Call),
            RecordKind::WorkStart => Effect::Open(Class::Work),
            RecordKind::WorkEnd => Effect::Close(Class::Work),
            RecordKind::Fault => Effect::Replace(Class::Fault),
            RecordKind::MachineCheck => Effect::Replace(Class::MachineCheck),
            RecordKind::Nmi => Effect::Nmi,
            RecordKind::Idle => Effect::Idle,
            RecordKind::Charge => Effect::Charge,
            RecordKind::TlbFlush | RecordKind::Point => Effect::Point,
        }
    }

    /// Whether the thread in the record surely has the CPU. A flush may be written in the middle of a switch.
    pub(crate) fn proves(self) -> bool {
        self != RecordKind::TlbFlush
    }

    /// Its class beside an edge.
    pub(crate) fn beside(self) -> Beside {
        match self {
            RecordKind::Switch => Beside::Switch,
            RecordKind::TimerEntry | RecordKind::VectorEntry | RecordKind::IrqEntry => {
                Beside::InterruptEntry
            }
            RecordKind::SoftirqEntry => Beside::SoftirqEntry,
            RecordKind::TimerExit
            | RecordKind::VectorExit
            | RecordKind::IrqExit
            | RecordKind::SoftirqExit => Beside::InterruptExit,
            _ => Beside::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RecordKind as Kind;

    #[test]
    fn to_an_edge_a_record_is_a_switch_an_entry_an_exit_or_anything_else() {
        for (beside, kinds) in [
            (Beside::Switch, &[Kind::Switch][..]),
            (
                Beside::InterruptEntry,
                &[Kind::TimerEntry, Kind::VectorEntry, Kind::IrqEntry],
            ),
            (Beside::SoftirqEntry, &[Kind::SoftirqEntry]),
            (
                Beside::InterruptExit,
                &[
                    Kind::TimerExit,
                    Kind::VectorExit,
                    Kind::IrqExit,
                    Kind::SoftirqExit,
                ],
            ),
            (
                Beside::Other,
                &[
                    Kind::HrtimerEntry,
                    Kind::HrtimerExit,
                    Kind::WheelEntry,
                    Kind::WheelExit,
                    Kind::CallEntry,
                    Kind::CallExit,
                    Kind::WorkStart,
                    Kind::WorkEnd,
                    Kind::Nmi,
                    Kind::Fault,
                    Kind::MachineCheck,
                    Kind::Idle,
                    Kind::Charge,
                    Kind::TlbFlush,
                    Kind::Point,
                ],
            ),
        ] {
            kinds
                .iter()
                .for_each(|kind| assert_eq!(kind.beside(), beside, "{kind:?}"));
        }
    }
}
