//! A kernel worker ran a work item: `workqueue_execute_start` to `_end`.

use super::{Rule, Scene, by_none, culprit};
use crate::timeline::Frame;
use jitterscope_model::{Culprit, CulpritKind, EventKind};

/// Frames of work items, nested in their worker's thread frame, which they name.
pub(super) static WORK: Rule = Rule {
    evidence: "sched_switch, workqueue_execute_start/end",
    opens: |kind| matches!(kind, EventKind::WorkStart { .. }),
    closes: |opening, event| match (&opening.kind, &event.kind) {
        (EventKind::WorkStart { work, .. }, EventKind::WorkEnd { work: ended }) => work == ended,
        _ => false,
    },
    endless: false,
    victims_only: false,
    sleeps: true,
    named_by: by_none,
    culprit: name,
};

/// Whether a frame is a work item.
pub(super) fn is_work(frame: &Frame) -> bool {
    matches!(frame.opening.kind, EventKind::WorkStart { .. })
}

fn name(frame: &Frame, scene: &Scene<'_>) -> Culprit {
    let EventKind::WorkStart { work, function } = frame.opening.kind else {
        return culprit(CulpritKind::Kworker, "unknown", "");
    };
    let worker = scene.lexicon.comm(frame.opening.tid);
    let (sender, workqueue) = scene.senders.queuer(work, frame.opening.time, scene.lexicon);
    let detail = match (worker, workqueue) {
        (Some(worker), Some(queue)) => format!("{worker}, workqueue {queue}"),
        (Some(worker), None) => worker.to_string(),
        (None, Some(queue)) => format!("workqueue {queue}"),
        (None, None) => String::new(),
    };
    Culprit { sender, ..culprit(CulpritKind::Kworker, &scene.lexicon.function(function), &detail) }
}
