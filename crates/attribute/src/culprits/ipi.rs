//! Another CPU interrupted this one: reschedules, function calls, irq work; and the remaining vectors.

use super::{Rule, Scene, by_none, unnamed};
use crate::timeline::Frame;
use jitterscope_model::{Culprit, CulpritKind, EventKind, Evidence, Subject};

/// Frames of interrupt vectors; a function called through one names it.
pub(super) static VECTOR: Rule = Rule {
    evidence: Evidence::VectorRecords,
    opens: |kind| matches!(kind, EventKind::VectorEntry { vector } if &**vector != "local_timer"),
    closes: |opening, event| match (&opening.kind, &event.kind) {
        (EventKind::VectorEntry { vector }, EventKind::VectorExit { vector: ended }) => vector == ended,
        _ => false,
    },
    endless: false,
    victims_only: false,
    sleeps: false,
    named_by: |child| matches!(child.opening.kind, EventKind::CsdEntry { .. }),
    culprit: vector_name,
};

/// One function called by another CPU.
pub(super) static FUNCTION: Rule = Rule {
    evidence: Evidence::CallRecords,
    opens: |kind| matches!(kind, EventKind::CsdEntry { .. }),
    closes: |opening, event| match (&opening.kind, &event.kind) {
        (EventKind::CsdEntry { function, csd }, EventKind::CsdExit { function: f, csd: c }) => {
            (function, csd) == (f, c)
        }
        _ => false,
    },
    endless: false,
    victims_only: false,
    sleeps: false,
    named_by: by_none,
    culprit: |frame, scene| {
        let EventKind::CsdEntry { function, csd } = frame.opening.kind else {
            return unnamed(CulpritKind::Ipi);
        };
        let sender = scene.senders.caller(csd, function, frame.opening.time, scene.lexicon);
        Culprit { sender, subject: Subject::Call(scene.lexicon.function(function)) }
    },
};

fn vector_name(frame: &Frame, scene: &Scene<'_>) -> Culprit {
    let EventKind::VectorEntry { vector } = &frame.opening.kind else {
        return unnamed(CulpritKind::Ipi);
    };
    match &**vector {
        "reschedule" => {
            let sender = scene.senders.rescheduler(scene.stall.cpu, frame.start, scene.lexicon);
            Culprit { sender, subject: Subject::Ipi(vector.clone()) }
        }
        "call_function" | "call_function_single" | "irq_work" => Subject::Ipi(vector.clone()).into(),
        _ => Subject::Vector(vector.clone()).into(),
    }
}
