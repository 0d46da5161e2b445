//! Non-maskable interrupts: `nmi_handler`, written when the handler has ended.

use super::{Rule, by_none, unnamed};
use jitterscope_model::{CulpritKind, EventKind, Evidence, Subject};

/// Frames of NMI handlers. The timeline opens them where their record says that they began.
pub(crate) static NMI: Rule = Rule {
    evidence: Evidence::NmiRecord,
    opens: |_| false,
    closes: |opening, event| opening == event,
    endless: false,
    victims_only: false,
    sleeps: false,
    named_by: by_none,
    culprit: |frame, scene| match frame.opening.kind {
        EventKind::NmiHandler { handler, .. } => Subject::Nmi(scene.lexicon.function(handler)).into(),
        _ => unnamed(CulpritKind::Nmi),
    },
};
