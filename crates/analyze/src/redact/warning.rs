//! Warnings: figures and CPUs pass, what somebody else worded does not.

use super::{LEFT_OUT, is_slug, version};
use jitterscope_model::{NoKernelEvents, Warning};

pub(super) fn warning(warning: &Warning) -> Warning {
    let text = || LEFT_OUT.to_owned();
    match warning {
        Warning::NoFreeCpu { .. }
        | Warning::NobodyBelongs { .. }
        | Warning::TooManyThreads { .. }
        | Warning::NotFollowed { .. }
        | Warning::UnrecordedSwitches { .. }
        | Warning::Folded { .. }
        | Warning::FrequencyChanged { .. }
        | Warning::CpuOffline { .. }
        | Warning::IdleControlShared { .. }
        | Warning::SmtSibling { .. }
        | Warning::RtThrottling { .. }
        | Warning::OwnBookkeeping { .. }
        | Warning::DroppedRecords { .. }
        | Warning::TraceLost { .. }
        | Warning::OwnPageFaults { .. }
        | Warning::LeftoversRemoved { .. }
        | Warning::TraceDiscarded { .. }
        | Warning::DiskFull { .. }
        | Warning::Interrupted
        | Warning::NotPinned { .. }
        | Warning::JournalWaits { .. }
        | Warning::RingFull { .. }
        | Warning::Disordered { .. }
        | Warning::VerdictsKept { .. }
        | Warning::InconsistentRows { .. } => warning.clone(),
        Warning::NoKernelEvents(NoKernelEvents { wanted, problem }) => {
            let problem = problem.as_ref().map(super::source::problem);
            Warning::NoKernelEvents(NoKernelEvents { wanted: *wanted, problem })
        }
        Warning::NobodyMet { watching, .. } => Warning::NobodyMet { whom: text(), watching: *watching },
        Warning::CommandFailed { .. } => Warning::CommandFailed { status: text() },
        Warning::CpuQuota { limit, times, time_ns, .. } => {
            Warning::CpuQuota { cgroup: text(), limit: *limit, times: *times, time_ns: *time_ns }
        }
        Warning::ClockFallback { .. } => Warning::ClockFallback { reason: text() },
        Warning::ClockDoubt { .. } => Warning::ClockDoubt { reason: text() },
        Warning::CpuEndedEarly { cpu, why } => {
            Warning::CpuEndedEarly { cpu: *cpu, why: super::ended_early(why) }
        }
        Warning::OutputLost { delivered, lost, .. } => {
            Warning::OutputLost { output: text(), delivered: *delivered, lost: *lost, why: text() }
        }
        Warning::ForcedPlacement { .. } => Warning::ForcedPlacement { misfit: text() },
        Warning::MemoryNotLocked { .. } => Warning::MemoryNotLocked { why: text() },
        Warning::JournalDiskFull { .. } => Warning::JournalDiskFull { why: text() },
        Warning::JournalEnded { .. } => Warning::JournalEnded { why: text() },
        Warning::AttributedAgain { by, recorded_by } => {
            Warning::AttributedAgain { by: version(by), recorded_by: version(recorded_by) }
        }
        Warning::Other(other) => {
            let id = if is_slug(&other.id) { other.id.clone() } else { LEFT_OUT.into() };
            let text = format!("Warning {id}; its text may name things and is left out.");
            Warning::worded(&id, &text)
        }
    }
}
