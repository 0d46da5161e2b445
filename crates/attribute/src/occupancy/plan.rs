//! What each kind of record does to a CPU's stack: one look-up instead of asking every kind of frame.

use super::frame::Class;
use super::record::RecordKind;

/// What a record does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Another thread gets the CPU.
    Switch,
    /// A frame begins.
    Open(Class),
    /// A frame ends.
    Close(Class),
    /// The frame of an exception takes the place of the one before.
    Replace(Class),
    /// A handler that ended just now, and says how long it ran.
    Nmi,
    /// Idle states change.
    Idle,
    /// It says how long a thread has run.
    Charge,
    /// Nothing begins or ends.
    Point,
}

/// What a record is to the edges of a stall: they are told apart by what lies beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// A switch.
    Switch,
    /// The entry of a hardware interrupt.
    InterruptEntry,
    /// The entry of a softirq.
    SoftirqEntry,
    /// The exit of an interrupt or of a softirq.
    InterruptExit,
    /// Any other record.
    Other,
}

impl RecordKind {
    /// What it does.
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

    /// Whether the thread that it names surely has the CPU. A flush may be written in the middle of a
    /// switch.
    pub(crate) fn proves(self) -> bool {
        self != RecordKind::TlbFlush
    }

    /// What it is to an edge.
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
