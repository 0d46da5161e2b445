//! Redacts sources: keeps their status, and their problems if those contain no names of the machine.

use super::{LEFT_OUT, any_version, listed, words};
use jitterscope_model::{
    AnyVersion, ClockFailure, EventGrain, SourceLoss, SourceProblem, SourceReport, SourceStatus,
    TscFlaw,
};

pub(super) fn source(source: &SourceReport) -> SourceReport {
    SourceReport {
        name: listed(words::SOURCES, &source.name).unwrap_or_else(|| LEFT_OUT.into()),
        status: match &source.status {
            SourceStatus::Other(_) => SourceStatus::Other(LEFT_OUT.into()),
            known => known.clone(),
        },
        problems: source
            .problems
            .iter()
            .filter(|problem| names_nothing(problem))
            .cloned()
            .collect(),
        losses: source
            .losses
            .iter()
            .filter(|loss| !matches!(loss, SourceLoss::Other(_)))
            .cloned()
            .collect(),
        lost: source.lost,
    }
}

/// The objection to the TSC, if it consists of figures typical for the machine's model; its clock is part of the
/// machine's state anyway.
pub(super) fn tsc_flaw(of: &AnyVersion<TscFlaw>) -> AnyVersion<TscFlaw> {
    any_version(of, |of| match of {
        TscFlaw::OtherClockSource { source } => Some(TscFlaw::OtherClockSource {
            source: listed(words::VALUES, source).unwrap_or_else(|| LEFT_OUT.into()),
        }),
        TscFlaw::NotWanted | TscFlaw::NoTsc | TscFlaw::NotConstant | TscFlaw::StopsInIdle => {
            Some(of.clone())
        }
        TscFlaw::ClockSourceUnreadable { .. } => None,
    })
}

/// A problem, or a marker for one that may contain names.
pub(super) fn problem(problem: &SourceProblem) -> SourceProblem {
    if names_nothing(problem) {
        return problem.clone();
    }
    SourceProblem::left_out()
}

/// Whether a problem consists only of figures and CPUs.
fn names_nothing(problem: &SourceProblem) -> bool {
    match problem {
        SourceProblem::MountDenied
        | SourceProblem::LockedDown
        | SourceProblem::PidNamespace
        | SourceProblem::CpusWithoutSwitches { .. }
        | SourceProblem::EventsLost { .. }
        | SourceProblem::CallsLost { .. }
        | SourceProblem::StacksLost { .. }
        | SourceProblem::StacksNotAsked
        | SourceProblem::GraphForOne
        | SourceProblem::NoFunctionNames
        | SourceProblem::VirtualSmiCount
        | SourceProblem::NoMsrDevice { .. }
        | SourceProblem::MsrDenied { .. }
        | SourceProblem::NoSmiCount { .. } => true,
        SourceProblem::EventsNotAsked { grain } => EventGrain::KNOWN.contains(grain),
        SourceProblem::NoTsc { because } => tsc_flaw(because) == *because,
        SourceProblem::NoClock { because } => *because == ClockFailure::Stuck,
        SourceProblem::NoPermission { .. }
        | SourceProblem::InstancesOfOwner { .. }
        | SourceProblem::UserNamespace { .. }
        | SourceProblem::MountRefused { .. }
        | SourceProblem::TracefsUnusable { .. }
        | SourceProblem::TraceClock { .. }
        | SourceProblem::BufferRefused { .. }
        | SourceProblem::ValueRefused { .. }
        | SourceProblem::ControlUnreadable { .. }
        | SourceProblem::InstanceRefused { .. }
        | SourceProblem::EventsMissing { .. }
        | SourceProblem::NotInFile { .. }
        | SourceProblem::NoEvents { .. }
        | SourceProblem::FormatUnreadable { .. }
        | SourceProblem::NoTraceBuffer { .. }
        | SourceProblem::NoTracer { .. }
        | SourceProblem::GraphTaken { .. }
        | SourceProblem::NoFunction { .. }
        | SourceProblem::AddressesHidden { .. }
        | SourceProblem::FunctionNamesUnreadable { .. }
        | SourceProblem::CountersMissing { .. }
        | SourceProblem::CountersUnreadable { .. }
        | SourceProblem::NoCpuRow { .. }
        | SourceProblem::NoStealColumn { .. }
        | SourceProblem::CountersVersion { .. }
        | SourceProblem::MsrUnreadable { .. }
        | SourceProblem::Unknown(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::probe::grain;
    use super::*;

    #[test]
    fn which_events_were_asked_for_passes_unless_a_newer_version_chose_it() {
        let newer = EventGrain::Other("a-name".into());
        for (asked, passes) in [
            (EventGrain::All, true),
            (EventGrain::Coarse, true),
            (newer, false),
        ] {
            let problem = SourceProblem::EventsNotAsked {
                grain: asked.clone(),
            };
            let loss = SourceLoss::WorkItems;
            let limited =
                SourceReport::limited("tracefs", SourceStatus::Degraded, problem.clone(), loss);
            let out = source(&limited);
            let kept = if passes { vec![problem] } else { Vec::new() };
            assert_eq!(
                (&out.problems, &out.losses[..]),
                (&kept, &[SourceLoss::WorkItems][..])
            );
            let word = if passes { asked.as_str() } else { LEFT_OUT };
            assert_eq!(grain(&asked).as_str(), word);
        }
    }
}
