//! The local timer interrupt and the timer functions that it, or the TIMER softirq, runs.

use super::{Rule, by_none, unnamed};
use crate::timeline::Frame;
use jitterscope_model::{CulpritKind, EventKind, Evidence, KernelAddr, Subject, TimerSource};

const VECTOR: &str = "local_timer";

/// The interrupt itself; the longest function that it ran names it.
pub(super) static LOCAL_TIMER: Rule = Rule {
    evidence: Evidence::LocalTimerRecords,
    opens: |kind| matches!(kind, EventKind::VectorEntry { vector } if &**vector == VECTOR),
    closes: |opening, event| match (&opening.kind, &event.kind) {
        (EventKind::VectorEntry { .. }, EventKind::VectorExit { vector }) => &**vector == VECTOR,
        _ => false,
    },
    endless: false,
    victims_only: false,
    sleeps: false,
    named_by: is_function,
    culprit: |_, _| Subject::Timer { function: None, source: Some(TimerSource::Interrupt) }.into(),
};

/// One timer function: of a high-resolution timer, or of the timer wheel.
pub(super) static FUNCTION: Rule = Rule {
    evidence: Evidence::TimerRecords,
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
    culprit: |frame, scene| {
        let ran = |function: KernelAddr, source| {
            Subject::Timer { function: Some(scene.lexicon.function(function)), source: Some(source) }.into()
        };
        match frame.opening.kind {
            EventKind::HrtimerEntry { function, .. } => ran(function, TimerSource::HighResolution),
            EventKind::TimerEntry { function, .. } => ran(function, TimerSource::Wheel),
            _ => unnamed(CulpritKind::Timer),
        }
    },
};

/// Whether a frame is a timer function.
pub(super) fn is_function(frame: &Frame) -> bool {
    matches!(frame.opening.kind, EventKind::HrtimerEntry { .. } | EventKind::TimerEntry { .. })
}
