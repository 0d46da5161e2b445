//! A device's interrupt handler: `irq_handler_entry` to `_exit`.

use super::{Rule, by_none, culprit};
use jitterscope_model::{CulpritKind, EventKind};

/// Frames of device handlers.
pub(super) static HANDLER: Rule = Rule {
    evidence: "irq_handler_entry/exit",
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
        EventKind::IrqEntry { irq, action } => culprit(CulpritKind::Irq, action, &format!("irq {irq}")),
        _ => culprit(CulpritKind::Irq, "unknown", ""),
    },
};
