//! Another CPU interrupted this one: reschedules, function calls, irq work; and the remaining vectors.

use super::{Rule, Scene, by_none, culprit};
use crate::timeline::Frame;
use jitterscope_model::{Culprit, CulpritKind, EventKind};

/// Frames of interrupt vectors; a function called through one names it.
pub(super) static VECTOR: Rule = Rule {
    evidence: "irq_vectors entry/exit, csd_function_entry/exit",
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
    evidence: "csd_function_entry/exit, csd_queue_cpu",
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
            return culprit(CulpritKind::Ipi, "unknown", "");
        };
        let sender = scene.senders.caller(csd, function, frame.opening.time, scene.lexicon);
        let name = scene.lexicon.function(function);
        Culprit { sender, ..culprit(CulpritKind::Ipi, &name, "function call interrupt") }
    },
};

fn vector_name(frame: &Frame, scene: &Scene<'_>) -> Culprit {
    let EventKind::VectorEntry { vector } = &frame.opening.kind else {
        return culprit(CulpritKind::Ipi, "unknown", "");
    };
    match &**vector {
        "reschedule" => {
            let sender = scene.senders.rescheduler(scene.stall.cpu, frame.start, scene.lexicon);
            Culprit { sender, ..culprit(CulpritKind::Ipi, vector, "a task was woken for this CPU") }
        }
        "call_function" | "call_function_single" => {
            culprit(CulpritKind::Ipi, vector, "function call interrupt")
        }
        "irq_work" => culprit(CulpritKind::Ipi, vector, "work that this CPU deferred to an interrupt"),
        _ => culprit(CulpritKind::Irq, vector, "interrupt vector"),
    }
}
