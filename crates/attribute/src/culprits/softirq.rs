//! A softirq: `softirq_entry` to `_exit`.

use super::{Rule, culprit, timer};
use jitterscope_model::{CulpritKind, EventKind, softirq_name};

/// Frames of softirqs; a timer function run by one names it.
pub(super) static SOFTIRQ: Rule = Rule {
    evidence: "softirq_entry/exit",
    opens: |kind| matches!(kind, EventKind::SoftirqEntry { .. }),
    closes: |opening, event| match (&opening.kind, &event.kind) {
        (EventKind::SoftirqEntry { vec }, EventKind::SoftirqExit { vec: ended }) => vec == ended,
        _ => false,
    },
    endless: false,
    victims_only: false,
    sleeps: true,
    named_by: timer::is_function,
    culprit: |frame, _| {
        let EventKind::SoftirqEntry { vec } = frame.opening.kind else {
            return culprit(CulpritKind::Softirq, "unknown", "");
        };
        let name = softirq_name(vec).map_or_else(|| format!("softirq {vec}"), str::to_owned);
        culprit(CulpritKind::Softirq, &name, &format!("vector {vec}"))
    },
};
