//! A device's interrupt handler: `irq_handler_entry` to `_exit`.

use super::{Rule, by_none, unnamed};
use jitterscope_model::{CulpritKind, EventKind, Evidence, Subject};

/// Frames of device handlers.
pub(super) static HANDLER: Rule = Rule {
    evidence: Evidence::HandlerRecords,
    opens: |kind| matches!(kind, EventKind::IrqEntry { .. }),
    closes: |opening, event| match (&opening.kind, &event.kind) {
        (EventKind::IrqEntry { irq, .. }, EventKind::IrqExit { irq: ended }) => irq == ended,
        _ => false,
    },
    endless: false,
    victims_only: false,
    sleeps: false,
    named_by: by_none,
    culprit: |frame, _| match &frame.opening.kind {
        EventKind::IrqEntry { irq, action } => {
            Subject::Interrupt { number: Some(*irq), action: action.clone() }.into()
        }
        _ => unnamed(CulpritKind::Irq),
    },
};
