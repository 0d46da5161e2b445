//! What no record explains, told apart by exclusion as far as the evidence goes.

use crate::costs::Edge;
use jitterscope_model::{About, Confidence, Culprit, Evidence, Name, Nanos, Part, Subject, Verdict};

/// A stall shorter than this without any event is within reach of memory, a busy sibling thread or the
/// microarchitecture, and too short for most exits to a hypervisor.
const SHORT: Nanos = Nanos(1000);
/// The unit in which `/proc/stat` counts stolen time.
const COUNTED_IN: Nanos = Nanos(10_000_000);

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
    /// Time that the host gave to others, as counted around the stall and not yet told of another.
    pub(crate) stolen: Nanos,
    /// Page faults of the victim that were counted around the stall, left no record, and were not yet told.
    pub(crate) faults: u64,
    /// A change of CPU frequency was recorded nearby.
    pub(crate) frequency_change: bool,
    /// It begins where the stall before it ended: the probe was storing that one.
    pub(crate) adjacent: bool,
}

/// The verdict on a stall without kernel events, most specific first.
pub(crate) fn unseen(question: &OutsideQuestion<'_>) -> Part {
    let q = question;
    let alone = |verdict: Subject, sure, evidence| Part::whole(verdict, q.length, sure, evidence);
    let among = |verdict, sure, evidence| Part {
        others_stalled: Some(u32::try_from(q.simultaneous).unwrap_or(u32::MAX)),
        ..alone(Subject::verdict(verdict), sure, evidence)
    };
    if q.smi.is_some_and(|count| count > 0) {
        let sure = if q.simultaneous > 0 { Confidence::High } else { Confidence::Medium };
        return among(Verdict::Smi, sure, Evidence::SmiCount);
    }
    if q.adjacent && q.length < SHORT {
        let verdict = Subject::verdict(Verdict::OwnBookkeeping);
        return alone(verdict, Confidence::Medium, Evidence::AdjacentStall);
    }
    if !q.untraced.is_empty() {
        let vectors = q.untraced.iter().map(|name| Name::from(name.as_str())).collect();
        let verdict = Subject::Verdict(Verdict::UntracedInterrupt, About::Vectors(vectors));
        return alone(verdict, Confidence::Low, Evidence::UntracedCount);
    }
    if q.frequency_change {
        let verdict = Subject::verdict(Verdict::FrequencyChange);
        return alone(verdict, Confidence::Low, Evidence::FrequencyRecord);
    }
    if q.faults > 0 {
        let verdict = Subject::verdict(Verdict::UnrecordedFault);
        return alone(verdict, Confidence::Low, Evidence::FaultCount);
    }
    if q.length < SHORT {
        let verdict = Subject::verdict(Verdict::UnderOneMicrosecond);
        return alone(verdict, Confidence::Low, Evidence::TooShort);
    }
    if q.virtual_machine {
        if q.simultaneous > 0 {
            return among(Verdict::VirtualMachinePaused, Confidence::Medium, Evidence::HypervisorPresent);
        }
        return match stolen(q) {
            Some(sure) => among(Verdict::CpuTaken, sure, Evidence::StealCount),
            // Debug traps, breakpoints and most other exceptions leave no record either.
            None => among(Verdict::NoEventInVm, Confidence::Low, Evidence::HypervisorPresent),
        };
    }
    if q.measured > 1 && q.simultaneous + 1 == q.measured && q.smi.is_none() {
        return among(Verdict::AllCpusAtOnce, Confidence::Low, Evidence::AllCpusStalled);
    }
    let verdict = Subject::verdict(Verdict::OutsideThisKernel);
    alone(verdict, Confidence::Low, Evidence::NothingSeen)
}

/// How sure it is that the time stolen by the host is this stall; `None` when it need not be. A kernel counts
/// it in hundredths of a second, and adds up what is shorter: a stall that is short beside what was counted is
/// not shown to be part of it.
fn stolen(q: &OutsideQuestion<'_>) -> Option<Confidence> {
    let counted = q.stolen.0;
    if counted == 0 || q.length.0 < counted / 16 {
        return None;
    }
    let all_of_it = q.length >= COUNTED_IN && counted >= q.length.0 - COUNTED_IN.0;
    Some(if all_of_it { Confidence::High } else { Confidence::Medium })
}

/// Whose an edge is, beyond what is granted to its neighbour.
pub(crate) struct EdgeVerdict {
    pub(crate) culprit: Culprit,
    pub(crate) confidence: Confidence,
    pub(crate) evidence: Evidence,
}

/// The verdict on what is left of a lead, hole or trail.
pub(crate) fn edge(edge: Edge, virtual_machine: bool) -> EdgeVerdict {
    let (verdict, confidence, evidence) = match edge {
        Edge::LeadInterrupt if virtual_machine => {
            (Verdict::LateInterrupt, Confidence::Medium, Evidence::LeadInterruptInVm)
        }
        // A fault, a switch or a system call is the thread's own doing: no host delivers it late.
        Edge::LeadInterrupt | Edge::LeadSwitch | Edge::LeadOther if virtual_machine => {
            (Verdict::BeforeFirstEvent, Confidence::Low, Evidence::LeadInVm)
        }
        Edge::LeadInterrupt | Edge::LeadSwitch | Edge::LeadOther => {
            (Verdict::BeforeFirstEvent, Confidence::Low, Evidence::Lead)
        }
        Edge::HoleSwitch | Edge::HoleSoftirq | Edge::HoleOther => {
            (Verdict::BetweenEvents, Confidence::Low, Evidence::Hole)
        }
        Edge::TrailInterrupt | Edge::TrailSwitch | Edge::TrailOther => {
            (Verdict::AfterLastEvent, Confidence::Low, Evidence::Trail)
        }
    };
    EdgeVerdict { culprit: Subject::verdict(verdict).into(), confidence, evidence }
}

/// A frame whose exit was never recorded.
pub(crate) fn left_open(records: &Evidence) -> Culprit {
    Subject::Verdict(Verdict::FrameLeftOpen, About::Frame(records.clone())).into()
}
