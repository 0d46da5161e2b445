//! A kernel worker ran a work item: `workqueue_execute_start` to `_end`.

use super::{Rule, Scene, by_none, unnamed};
use crate::timeline::Frame;
use jitterscope_model::{Culprit, CulpritKind, EventKind, Evidence, Subject, Work, Worker};

/// Frames of work items, nested in their worker's thread frame, which they name.
pub(super) static WORK: Rule = Rule {
    evidence: Evidence::WorkRecords,
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
        return unnamed(CulpritKind::Kworker);
    };
    let tid = frame.opening.tid;
    let worker = Worker { tid: Some(tid), comm: scene.lexicon.comm(tid), class: None };
    let (sender, workqueue) = scene.senders.queuer(work, frame.opening.time, scene.lexicon);
    let function = Some(scene.lexicon.function(function));
    Culprit { sender, subject: Subject::Work(Work { function, workqueue, worker: Some(worker) }) }
}
