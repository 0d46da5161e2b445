//! Another CPU interrupted this one: reschedules, function calls, irq work; and the remaining vectors.

use super::{Kind, Naming};
use crate::occupancy::Frame;
use jitterscope_model::{Evidence, KernelAddr, Subject};

/// The vector that makes a CPU reschedule.
const RESCHEDULE: &str = "reschedule";

/// Interrupt vectors. A function called through one provides its name.
pub(super) static VECTOR: Kind = Kind {
    evidence: Evidence::VectorRecords,
    subject: vector,
    trigger: |frame, naming| {
        let is_known = frame.is_vector_of(naming.names, RESCHEDULE);
        is_known
            .then(|| naming.senders.rescheduled_by(naming.cpu, frame.start))
            .flatten()
    },
};

/// One function called by another CPU.
pub(super) static FUNCTION: Kind = Kind {
    evidence: Evidence::CallRecords,
    subject: |frame, naming| Subject::Call(naming.resolver.function(KernelAddr(frame.subject))),
    trigger: |frame, naming| {
        naming
            .senders
            .called_by(frame.key, KernelAddr(frame.subject), frame.opened)
    },
};

fn vector(frame: &Frame, naming: &Naming<'_>) -> Subject {
    let vector = naming.text(frame.key);
    match &*vector {
        RESCHEDULE | "call_function" | "call_function_single" | "irq_work" => Subject::Ipi(vector),
        _ => Subject::Vector(vector),
    }
}
