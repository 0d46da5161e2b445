//! Exceptions of the victim itself: page faults and machine checks. Neither has an exit record.

use super::{Rule, by_none, unnamed};
use jitterscope_model::{CulpritKind, EventKind, Evidence, Subject};

/// Frames of exceptions: from the record until the next exception or the end of the stall.
pub(super) static FAULT: Rule = Rule {
    evidence: Evidence::ExceptionRecord,
    opens: |kind| matches!(kind, EventKind::PageFault { .. } | EventKind::MachineCheck { .. }),
    closes: |_, event| matches!(event.kind, EventKind::PageFault { .. } | EventKind::MachineCheck { .. }),
    endless: true,
    victims_only: true,
    sleeps: true,
    named_by: by_none,
    culprit: |frame, _| match frame.opening.kind {
        EventKind::PageFault { user, .. } => Subject::PageFault { user }.into(),
        EventKind::MachineCheck { bank } => Subject::MachineCheck { bank: Some(bank) }.into(),
        _ => unnamed(CulpritKind::Unresolved),
    },
};
