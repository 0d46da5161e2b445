//! A softirq: `softirq_entry` to `_exit`.

use super::{Rule, timer, unnamed};
use jitterscope_model::{CulpritKind, EventKind, Evidence, Subject};

/// Frames of softirqs; a timer function run by one names it.
pub(super) static SOFTIRQ: Rule = Rule {
    evidence: Evidence::SoftirqRecords,
    opens: |kind| matches!(kind, EventKind::SoftirqEntry { .. }),
    closes: |opening, event| match (&opening.kind, &event.kind) {
        (EventKind::SoftirqEntry { vec }, EventKind::SoftirqExit { vec: ended }) => vec == ended,
        _ => false,
    },
    endless: false,
    victims_only: false,
    sleeps: true,
    named_by: timer::is_function,
    culprit: |frame, _| match frame.opening.kind {
        EventKind::SoftirqEntry { vec } => Subject::Softirq(vec).into(),
        _ => unnamed(CulpritKind::Softirq),
    },
};
