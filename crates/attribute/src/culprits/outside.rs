//! Classifies by exclusion what no record explains.

use crate::costs::Edge;
use jitterscope_model::{
    About, Confidence, Culprit, Evidence, Name, Nanos, Part, Subject, Ticks, Verdict,
};

/// A stall shorter than this without any event can come from memory, a busy sibling thread or the microarchitecture,
/// and is too short for most exits to a hypervisor.
const SHORT: Nanos = Nanos(1000);
/// A shorter stall is not taken for a pause of the whole machine, even if others coincide: exceptions without a record
/// take less, and may occur on several CPUs at once.
const LONGER_THAN_EXCEPTIONS: Nanos = Nanos(200_000);
/// The unit in which `/proc/stat` counts stolen time.
const COUNTED_IN: Nanos = Nanos(10_000_000);

/// The facts about a stall without kernel events.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutsideQuestion<'a> {
    pub(crate) length: Nanos,
    /// Whether this is a virtual machine.
    pub(crate) virtual_machine: bool,
    /// The number of other measured CPUs that stalled at the same instant, with events or without.
    pub(crate) simultaneous: usize,
    /// Whether significantly many such stalls coincide with others.
    pub(crate) beyond_chance: bool,
    /// The number of measured CPUs.
    pub(crate) measured: usize,
    /// System management interrupts around the stall; `None` if they cannot be counted.
    pub(crate) smi: Option<u64>,
    /// Interrupt vectors without a tracepoint whose counters rose around the stall.
    pub(crate) untraced: &'a [String],
    /// Stolen time around the stall that is not yet assigned to another stall.
    pub(crate) stolen: Nanos,
    /// Page faults of the victim around the stall without a record that are not yet assigned to another stall.
    pub(crate) faults: u64,
    /// A change of CPU frequency was recorded nearby.
    pub(crate) frequency_change: bool,
    /// Whether it begins where the previous stall ended: the probe was storing that one.
    pub(crate) adjacent: bool,
}

impl OutsideQuestion<'_> {
    /// Whether its verdict may depend on other CPUs' stalls.
    pub(crate) fn asks_for_others(&self) -> bool {
        self.measured > 1 && (!self.virtual_machine || self.smi > Some(0) || self.may_be_pause())
    }

    /// Whether it is long enough for a pause of the whole machine.
    fn may_be_pause(&self) -> bool {
        self.length >= LONGER_THAN_EXCEPTIONS || stolen(self.length, self.stolen).is_some()
    }
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
        let sure = if q.beyond_chance {
            Confidence::High
        } else {
            Confidence::Medium
        };
        return among(Verdict::Smi, sure, Evidence::SmiCount);
    }
    if q.adjacent && q.length < SHORT {
        let verdict = Subject::verdict(Verdict::OwnBookkeeping);
        return alone(verdict, Confidence::Medium, Evidence::AdjacentStall);
    }
    if !q.untraced.is_empty() {
        let vectors = q
            .untraced
            .iter()
            .map(|name| Name::from(name.as_str()))
            .collect();
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
        if q.beyond_chance && q.may_be_pause() {
            return among(
                Verdict::VirtualMachinePaused,
                Confidence::Medium,
                Evidence::HypervisorPresent,
            );
        }
        return match stolen(q.length, q.stolen) {
            Some(sure) => among(Verdict::CpuTaken, sure, Evidence::StealCount),
            // Debug traps, breakpoints and most other exceptions leave no record either.
            None => among(
                Verdict::NoEventInVm,
                Confidence::Low,
                Evidence::HypervisorPresent,
            ),
        };
    }
    if q.beyond_chance && q.simultaneous + 1 == q.measured && q.smi.is_none() {
        return among(
            Verdict::AllCpusAtOnce,
            Confidence::Low,
            Evidence::AllCpusStalled,
        );
    }
    let verdict = Subject::verdict(Verdict::OutsideThisKernel);
    alone(verdict, Confidence::Low, Evidence::NothingSeen)
}

/// How certain it is that counted stolen time is this stall; `None` if it need not be. A kernel counts in hundredths of
/// a second, and accumulates shorter times: a stall that is short compared with the count need not be part of it.
fn stolen(length: Nanos, counted: Nanos) -> Option<Confidence> {
    if counted == Nanos::ZERO || length.0 < counted.0 / 16 {
        return None;
    }
    let all_of_it = length >= COUNTED_IN && counted.0 >= length.0 - COUNTED_IN.0;
    Some(if all_of_it {
        Confidence::High
    } else {
        Confidence::Medium
    })
}

/// The verdict on the part of an edge that is not granted to its neighbour.
pub(crate) struct EdgeVerdict {
    pub(crate) verdict: Verdict,
    pub(crate) confidence: Confidence,
    pub(crate) evidence: Evidence,
}

/// The facts about the host around an edge.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Host {
    /// Whether there is a host.
    pub(crate) present: bool,
    /// Stolen time around the stall that is not yet assigned to another stall.
    pub(crate) stolen: Nanos,
    /// The latest possible due time of the interrupt that is the stall's first event; `None` if unknown.
    pub(crate) due: Option<Ticks>,
}

/// The verdict on the time before an interrupt since it was due.
pub(crate) fn late_interrupt() -> EdgeVerdict {
    let (confidence, evidence) = (Confidence::Medium, Evidence::LateInterruptInVm);
    EdgeVerdict {
        verdict: Verdict::LateInterrupt,
        confidence,
        evidence,
    }
}

/// The verdict on the remaining part of a lead, hole or trail of this length.
pub(crate) fn edge(edge: Edge, length: Nanos, host: Host) -> EdgeVerdict {
    let stolen = || stolen(length, host.stolen);
    let (verdict, confidence, evidence) = match edge {
        Edge::LeadInterrupt if host.present => match stolen() {
            Some(sure) => (
                Verdict::HostBeforeFirstEvent,
                sure,
                Evidence::StealCountBeforeInterrupt,
            ),
            // An exception without a record may have begun it; but that delays no interrupt.
            None => (
                Verdict::BeforeFirstEvent,
                Confidence::Low,
                Evidence::LeadInterruptInVm,
            ),
        },
        // A fault, a switch or a system call comes from the thread itself: no host delays it.
        Edge::LeadSwitch | Edge::LeadOther if host.present => (
            Verdict::BeforeFirstEvent,
            Confidence::Low,
            Evidence::LeadInVm,
        ),
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
    EdgeVerdict {
        verdict,
        confidence,
        evidence,
    }
}

/// A frame whose exit was not recorded.
pub(crate) fn left_open(records: &Evidence) -> Culprit {
    Subject::Verdict(Verdict::FrameLeftOpen, About::Frame(records.clone())).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict_of(question: &OutsideQuestion<'_>) -> (Verdict, Confidence, Evidence) {
        let part = unseen(question);
        assert_eq!((part.net, part.gross), (question.length, question.length));
        let among = matches!(
            part.evidence,
            Evidence::SmiCount | Evidence::AllCpusStalled | Evidence::StealCount
        );
        let among = among || part.evidence == Evidence::HypervisorPresent;
        let others = among.then(|| u32::try_from(question.simultaneous).unwrap());
        assert_eq!(part.others_stalled, others, "{question:?}");
        let Subject::Verdict(verdict, _) = part.culprit.subject else {
            panic!("{part:?}")
        };
        (verdict, part.confidence, part.evidence)
    }

    /// A stall of one microsecond, on one of two measured CPUs, on bare metal, without evidence.
    fn plain() -> OutsideQuestion<'static> {
        OutsideQuestion {
            length: SHORT,
            measured: 2,
            ..OutsideQuestion::default()
        }
    }

    #[test]
    fn the_most_specific_evidence_wins() {
        let names = ["PIN".to_owned()];
        // Each question has all the evidence of the later ones.
        let nothing = plain();
        let faulted = OutsideQuestion {
            faults: 1,
            ..nothing.clone()
        };
        let changed = OutsideQuestion {
            frequency_change: true,
            ..faulted.clone()
        };
        let untraced = OutsideQuestion {
            untraced: &names,
            ..changed.clone()
        };
        let behind = OutsideQuestion {
            adjacent: true,
            length: Nanos(999),
            ..untraced.clone()
        };
        let smi = OutsideQuestion {
            smi: Some(1),
            ..behind.clone()
        };
        for (question, verdict, sure, evidence) in [
            (
                &nothing,
                Verdict::OutsideThisKernel,
                Confidence::Low,
                Evidence::NothingSeen,
            ),
            (
                &faulted,
                Verdict::UnrecordedFault,
                Confidence::Low,
                Evidence::FaultCount,
            ),
            (
                &changed,
                Verdict::FrequencyChange,
                Confidence::Low,
                Evidence::FrequencyRecord,
            ),
            (
                &untraced,
                Verdict::UntracedInterrupt,
                Confidence::Low,
                Evidence::UntracedCount,
            ),
            (
                &behind,
                Verdict::OwnBookkeeping,
                Confidence::Medium,
                Evidence::AdjacentStall,
            ),
            (&smi, Verdict::Smi, Confidence::Medium, Evidence::SmiCount),
        ] {
            assert_eq!(verdict_of(question), (verdict, sure, evidence));
        }
        let both = OutsideQuestion {
            simultaneous: 1,
            beyond_chance: true,
            ..smi
        };
        assert_eq!(verdict_of(&both).1, Confidence::High);
        // Zero interrupts were counted.
        assert_eq!(
            verdict_of(&OutsideQuestion {
                smi: Some(0),
                ..nothing.clone()
            })
            .0,
            Verdict::OutsideThisKernel
        );
        // Bookkeeping takes less than a microsecond.
        let long = OutsideQuestion {
            adjacent: true,
            ..nothing
        };
        assert_eq!(verdict_of(&long).0, Verdict::OutsideThisKernel);
    }

    #[test]
    fn under_a_microsecond_there_is_no_telling() {
        for virtual_machine in [false, true] {
            let short = OutsideQuestion {
                length: Nanos(999),
                virtual_machine,
                simultaneous: 1,
                beyond_chance: true,
                ..plain()
            };
            assert_eq!(
                verdict_of(&short),
                (
                    Verdict::UnderOneMicrosecond,
                    Confidence::Low,
                    Evidence::TooShort
                )
            );
        }
    }

    #[test]
    fn simultaneous_stalls_are_firmware_without_an_interrupt_counter() {
        let all = OutsideQuestion {
            simultaneous: 2,
            beyond_chance: true,
            measured: 3,
            ..plain()
        };
        assert_eq!(
            verdict_of(&all),
            (
                Verdict::AllCpusAtOnce,
                Confidence::Low,
                Evidence::AllCpusStalled
            )
        );
        for other in [
            OutsideQuestion {
                simultaneous: 1,
                ..all.clone()
            },
            OutsideQuestion {
                smi: Some(0),
                ..all.clone()
            },
            // All of them may coincide by chance.
            OutsideQuestion {
                beyond_chance: false,
                ..all
            },
        ] {
            assert_eq!(verdict_of(&other).0, Verdict::OutsideThisKernel);
        }
    }

    #[test]
    fn the_host_took_what_it_counted_and_nothing_that_is_short_beside_it() {
        let vm = OutsideQuestion {
            virtual_machine: true,
            ..plain()
        };
        let with = |length: u64, stolen: u64| {
            verdict_of(&OutsideQuestion {
                length: Nanos(length),
                stolen: Nanos(stolen),
                ..vm.clone()
            })
        };
        assert_eq!(
            with(50_000, 0),
            (
                Verdict::NoEventInVm,
                Confidence::Low,
                Evidence::HypervisorPresent
            )
        );
        let ms = 1_000_000;
        // A sixteenth of the count may be part of it.
        assert_eq!(with(10 * ms / 16 - 1, 10 * ms).0, Verdict::NoEventInVm);
        assert_eq!(
            with(10 * ms / 16, 10 * ms),
            (Verdict::CpuTaken, Confidence::Medium, Evidence::StealCount)
        );
        // The whole count, within its resolution of hundredths of a second.
        assert_eq!(with(10 * ms - 1, 10 * ms).1, Confidence::Medium);
        assert_eq!(with(10 * ms, 10 * ms).1, Confidence::High);
        assert_eq!(with(30 * ms, 20 * ms).1, Confidence::High);
        assert_eq!(with(30 * ms, 20 * ms - 1).1, Confidence::Medium);
        let paused = |length: u64, stolen: u64, beyond_chance: bool| {
            verdict_of(&OutsideQuestion {
                simultaneous: 1,
                beyond_chance,
                length: Nanos(length),
                stolen: Nanos(stolen),
                ..vm.clone()
            })
        };
        let (sure, evidence) = (Confidence::Medium, Evidence::HypervisorPresent);
        let is = (Verdict::VirtualMachinePaused, sure, evidence);
        let long = LONGER_THAN_EXCEPTIONS.0;
        assert_eq!(paused(long, 0, true), is);
        assert_eq!(paused(long - 1, 0, true).0, Verdict::NoEventInVm);
        assert_eq!(paused(long, 0, false).0, Verdict::NoEventInVm);
        // The counted time must be this stall's.
        assert_eq!(paused(long - 1, 16 * (long - 1), true), is);
        assert_eq!(paused(long - 1, 16 * long, true).0, Verdict::NoEventInVm);
    }

    #[test]
    fn an_edge_is_classified_by_its_place() {
        for virtual_machine in [false, true] {
            let lead = if virtual_machine {
                Evidence::LeadInVm
            } else {
                Evidence::Lead
            };
            let verdict_of = |of| {
                let host = Host {
                    present: virtual_machine,
                    ..Host::default()
                };
                let found = edge(of, Nanos(20_000_000), host);
                (found.verdict, found.confidence, found.evidence)
            };
            for of in [Edge::LeadSwitch, Edge::LeadOther] {
                assert_eq!(
                    verdict_of(of),
                    (Verdict::BeforeFirstEvent, Confidence::Low, lead.clone())
                );
            }
            for of in [Edge::HoleSwitch, Edge::HoleSoftirq, Edge::HoleOther] {
                assert_eq!(
                    verdict_of(of),
                    (Verdict::BetweenEvents, Confidence::Low, Evidence::Hole)
                );
            }
            for of in [Edge::TrailInterrupt, Edge::TrailSwitch, Edge::TrailOther] {
                assert_eq!(
                    verdict_of(of),
                    (Verdict::AfterLastEvent, Confidence::Low, Evidence::Trail)
                );
            }
            let before = if virtual_machine {
                Evidence::LeadInterruptInVm
            } else {
                Evidence::Lead
            };
            assert_eq!(
                verdict_of(Edge::LeadInterrupt),
                (Verdict::BeforeFirstEvent, Confidence::Low, before)
            );
        }
    }

    #[test]
    fn lead_time_is_the_hosts_up_to_the_counted_steal() {
        let verdict_of = |of, length, stolen| {
            let host = Host {
                present: true,
                stolen: Nanos(stolen),
                due: None,
            };
            let found = edge(of, Nanos(length), host);
            (found.verdict, found.confidence, found.evidence)
        };
        let ms = 1_000_000;
        let counted = Evidence::StealCountBeforeInterrupt;
        let host = Verdict::HostBeforeFirstEvent;
        assert_eq!(
            verdict_of(Edge::LeadInterrupt, ms, 10 * ms),
            (host, Confidence::Medium, counted.clone())
        );
        assert_eq!(
            verdict_of(Edge::LeadInterrupt, 12 * ms, 10 * ms),
            (host, Confidence::High, counted)
        );
        let nobody = Verdict::BeforeFirstEvent;
        let uncounted = (nobody, Confidence::Low, Evidence::LeadInterruptInVm);
        assert_eq!(
            verdict_of(Edge::LeadInterrupt, 10 * ms / 16 - 1, 10 * ms),
            uncounted
        );
        // No host delays this edge, so counted stolen time does not matter.
        assert_eq!(
            verdict_of(Edge::LeadOther, 12 * ms, 10 * ms),
            (nobody, Confidence::Low, Evidence::LeadInVm)
        );
    }
}
