//! What no record explains, told apart by exclusion as far as the evidence goes.

use super::culprit;
use crate::costs::Edge;
use jitterscope_model::{Confidence, Culprit, CulpritKind, Nanos};

/// A stall shorter than this without any event is within reach of memory, a busy sibling thread or the
/// microarchitecture, and too short for most exits to a hypervisor.
const SHORT: Nanos = Nanos(1000);

/// What is known about a stall that has no kernel event inside.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutsideQuestion<'a> {
    /// Its length.
    pub(crate) length: Nanos,
    /// Whether this is a virtual machine.
    pub(crate) virtual_machine: bool,
    /// Other measured CPUs that stalled at the same instant, without events or not.
    pub(crate) simultaneous: usize,
    /// How many CPUs were measured.
    pub(crate) measured: usize,
    /// System management interrupts counted around the stall; `None` where they cannot be counted.
    pub(crate) smi: Option<u64>,
    /// Interrupt vectors without a tracepoint that counted up around the stall.
    pub(crate) untraced: &'a [String],
    /// A change of CPU frequency was recorded nearby.
    pub(crate) frequency_change: bool,
    /// It begins where the stall before it ended: the probe was storing that one.
    pub(crate) adjacent: bool,
}

/// Verdict, confidence and evidence for a stall without kernel events, most specific first.
pub(crate) fn unseen(question: &OutsideQuestion<'_>) -> (Culprit, Confidence, String) {
    let q = question;
    if q.smi.is_some_and(|count| count > 0) {
        let sure = if q.simultaneous > 0 { Confidence::High } else { Confidence::Medium };
        return (
            culprit(CulpritKind::Firmware, "SMI", "system management interrupt"),
            sure,
            format!("SMI count rose, {} other CPUs stalled too", q.simultaneous),
        );
    }
    if q.adjacent && q.length < SHORT {
        return (
            culprit(CulpritKind::Unresolved, "own bookkeeping", "the probe stored the stall before"),
            Confidence::Medium,
            "begins where the stall before it ended".into(),
        );
    }
    if !q.untraced.is_empty() {
        return (
            culprit(CulpritKind::Unresolved, "untraced interrupt", &q.untraced.join(", ")),
            Confidence::Low,
            "/proc/interrupts counted a vector without a tracepoint".into(),
        );
    }
    if q.frequency_change {
        return (
            culprit(CulpritKind::Unresolved, "frequency change", "the CPU changed its frequency nearby"),
            Confidence::Low,
            "power:cpu_frequency".into(),
        );
    }
    if q.length < SHORT {
        return (
            culprit(CulpritKind::Unresolved, "under 1 us", "memory, SMT sibling or microarchitecture"),
            Confidence::Low,
            "too short for a kernel entry".into(),
        );
    }
    if q.virtual_machine {
        let (name, sure) = if q.simultaneous > 0 {
            ("virtual machine paused", Confidence::Medium)
        } else {
            ("CPU taken", Confidence::Medium)
        };
        return (
            culprit(CulpritKind::Hypervisor, name, "no kernel event inside, on a virtual machine"),
            sure,
            format!("no event; hypervisor present; {} other CPUs stalled too", q.simultaneous),
        );
    }
    if q.measured > 1 && q.simultaneous + 1 == q.measured && q.smi.is_none() {
        return (
            culprit(CulpritKind::Firmware, "all CPUs at once", "as system management interrupts do"),
            Confidence::Low,
            "all measured CPUs stalled together; the SMI count cannot be read".into(),
        );
    }
    (
        culprit(CulpritKind::Unresolved, "outside this kernel", "hardware or firmware"),
        Confidence::Low,
        "no kernel event, no hypervisor".into(),
    )
}

/// Whose an edge is, beyond what is granted to its neighbour.
pub(crate) struct EdgeVerdict {
    pub(crate) culprit: Culprit,
    pub(crate) confidence: Confidence,
    pub(crate) evidence: &'static str,
}

/// The verdict on what is left of a lead, hole or trail.
pub(crate) fn edge(edge: Edge, virtual_machine: bool) -> EdgeVerdict {
    let verdict = |kind, name, detail, confidence, evidence| EdgeVerdict {
        culprit: culprit(kind, name, detail),
        confidence,
        evidence,
    };
    match edge {
        Edge::LeadInterrupt if virtual_machine => verdict(
            CulpritKind::Hypervisor,
            "late interrupt",
            "the CPU stood still before the interrupt was delivered",
            Confidence::Medium,
            "time before the first event, an interrupt, on a virtual machine",
        ),
        Edge::LeadInterrupt | Edge::LeadSwitch | Edge::LeadOther if virtual_machine => verdict(
            CulpritKind::Hypervisor,
            "before first event",
            "the CPU stood still before the kernel was entered",
            Confidence::Low,
            "time before the first event, on a virtual machine",
        ),
        Edge::LeadInterrupt | Edge::LeadSwitch | Edge::LeadOther => verdict(
            CulpritKind::Unresolved,
            "before first event",
            "kernel entry, firmware or hardware",
            Confidence::Low,
            "time before the first event",
        ),
        Edge::HoleSwitch | Edge::HoleSoftirq | Edge::HoleOther => verdict(
            CulpritKind::Unresolved,
            "between events",
            "kernel code without tracepoints, or the CPU was taken",
            Confidence::Low,
            "time between events with no frame open",
        ),
        Edge::TrailInterrupt | Edge::TrailSwitch | Edge::TrailOther => verdict(
            CulpritKind::Unresolved,
            "after last event",
            "kernel exit, or the CPU was taken",
            Confidence::Low,
            "time after the last event",
        ),
    }
}

/// A frame whose exit was never recorded.
pub(crate) fn left_open(evidence: &str) -> Culprit {
    culprit(CulpritKind::Unresolved, "frame left open", evidence)
}
