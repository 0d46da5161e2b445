//! Exceptions of the victim itself: page faults and machine checks. Neither has an exit record.

use super::{Rule, by_none, culprit};
use jitterscope_model::{CulpritKind, EventKind};

/// Frames of exceptions: from the record until the next exception or the end of the stall.
pub(super) static FAULT: Rule = Rule {
    evidence: "page_fault_user/kernel or mce_record (no exit record)",
    opens: |kind| matches!(kind, EventKind::PageFault { .. } | EventKind::MachineCheck { .. }),
    closes: |_, event| matches!(event.kind, EventKind::PageFault { .. } | EventKind::MachineCheck { .. }),
    endless: true,
    victims_only: true,
    sleeps: true,
    named_by: by_none,
    culprit: |frame, _| match frame.opening.kind {
        EventKind::PageFault { user: true, .. } => {
            culprit(CulpritKind::PageFault, "page_fault_user", "in user code")
        }
        EventKind::PageFault { .. } => culprit(CulpritKind::PageFault, "page_fault_kernel", "in kernel code"),
        EventKind::MachineCheck { bank } => {
            culprit(CulpritKind::Mce, "machine_check", &format!("bank {bank}"))
        }
        _ => culprit(CulpritKind::Unresolved, "unknown exception", ""),
    },
};
