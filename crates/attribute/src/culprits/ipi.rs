//! Another CPU interrupted this one: reschedules, function calls, irq work; and the remaining vectors.

use super::{Kind, Naming};
use crate::occupancy::Frame;
use jitterscope_model::{Culprit, Evidence, KernelAddr, Subject};

/// Interrupt vectors; a function called through one names it.
pub(super) static VECTOR: Kind = Kind { evidence: Evidence::VectorRecords, culprit: vector_name };

/// One function called by another CPU.
pub(super) static FUNCTION: Kind = Kind {
    evidence: Evidence::CallRecords,
    culprit: |frame, naming| {
        let (csd, function) = (frame.key, KernelAddr(frame.subject));
        let sender = naming.senders.caller(csd, function, frame.opened, naming.lexicon);
        let sender = sender.filter(|_| !naming.folded);
        Culprit { sender, subject: Subject::Call(naming.lexicon.function(function)) }
    },
};

fn vector_name(frame: &Frame, naming: &Naming<'_>) -> Culprit {
    let vector = naming.text(frame.key);
    match &*vector {
        "reschedule" => {
            let sender = naming.senders.rescheduler(naming.cpu, frame.start, naming.lexicon);
            Culprit { sender: sender.filter(|_| !naming.folded), subject: Subject::Ipi(vector) }
        }
        "call_function" | "call_function_single" | "irq_work" => Subject::Ipi(vector).into(),
        _ => Subject::Vector(vector).into(),
    }
}
