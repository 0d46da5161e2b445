//! The local timer interrupt and the timer functions that it, or the TIMER softirq, runs.

use super::{Rule, by_none, culprit};
use crate::timeline::Frame;
use jitterscope_model::{CulpritKind, EventKind};

const VECTOR: &str = "local_timer";

/// The interrupt itself; the longest function that it ran names it.
pub(super) static LOCAL_TIMER: Rule = Rule {
    evidence: "irq_vectors:local_timer, hrtimer_expire_entry/exit",
    opens: |kind| matches!(kind, EventKind::VectorEntry { vector } if &**vector == VECTOR),
    closes: |opening, event| match (&opening.kind, &event.kind) {
        (EventKind::VectorEntry { .. }, EventKind::VectorExit { vector }) => &**vector == VECTOR,
        _ => false,
    },
    endless: false,
    victims_only: false,
    sleeps: false,
    named_by: is_function,
    culprit: |_, _| culprit(CulpritKind::Timer, VECTOR, "interrupt that ran no timer function"),
};

/// One timer function: of a high-resolution timer, or of the timer wheel.
pub(super) static FUNCTION: Rule = Rule {
    evidence: "hrtimer_expire_entry/exit or timer_expire_entry/exit",
    opens: |kind| matches!(kind, EventKind::HrtimerEntry { .. } | EventKind::TimerEntry { .. }),
    closes: |opening, event| match (&opening.kind, &event.kind) {
        (EventKind::HrtimerEntry { hrtimer, .. }, EventKind::HrtimerExit { hrtimer: ended }) => {
            hrtimer == ended
        }
        (EventKind::TimerEntry { timer, .. }, EventKind::TimerExit { timer: ended }) => timer == ended,
        _ => false,
    },
    endless: false,
    victims_only: false,
    sleeps: true,
    named_by: by_none,
    culprit: |frame, scene| match frame.opening.kind {
        EventKind::HrtimerEntry { function, .. } => {
            culprit(CulpritKind::Timer, &scene.lexicon.function(function), "hrtimer, local_timer interrupt")
        }
        EventKind::TimerEntry { function, .. } => {
            culprit(CulpritKind::Timer, &scene.lexicon.function(function), "timer wheel, TIMER softirq")
        }
        _ => culprit(CulpritKind::Timer, "unknown", ""),
    },
};

/// Whether a frame is a timer function.
pub(super) fn is_function(frame: &Frame) -> bool {
    matches!(frame.opening.kind, EventKind::HrtimerEntry { .. } | EventKind::TimerEntry { .. })
}
