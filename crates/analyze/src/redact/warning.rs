//! Redacts warnings: keeps figures and CPUs, removes texts of other origin.

use super::any_version;
use super::source::tsc_flaw;
use super::{LEFT_OUT, is_slug, version};
use jitterscope_model::{Misfit, NamedOwner, NoKernelEvents, Warning};

pub(super) fn warning(warning: &Warning) -> Warning {
    let text = || LEFT_OUT.to_owned();
    match warning {
        Warning::NoFreeCpu { .. }
        | Warning::NoOwner { .. }
        | Warning::TooManyThreads { .. }
        | Warning::NotFollowed { .. }
        | Warning::RenamedOften { .. }
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
        | Warning::WriterBehind { .. }
        // Its files and events are the kernel's.
        | Warning::TraceDisturbed { .. }
        | Warning::EventsMissing { .. }
        | Warning::OwnPageFaults { .. }
        | Warning::LeftoversRemoved { .. }
        | Warning::TraceDiscarded { .. }
        | Warning::DiskFull { .. }
        | Warning::Interrupted
        | Warning::Killed { .. }
        | Warning::SavedPart { .. }
        | Warning::NotPinned { .. }
        | Warning::JournalWaits { .. }
        | Warning::RingFull { .. }
        | Warning::MessagesLost { .. }
        | Warning::Disordered { .. }
        | Warning::VerdictsKept { .. }
        | Warning::ImportCut { .. }
        | Warning::ImportDisordered { .. }
        | Warning::ImportMoved { .. }
        | Warning::ImportLocalClock
        | Warning::ImportProcess { .. }
        | Warning::InconsistentRows { .. } => warning.clone(),
        Warning::NoKernelEvents(NoKernelEvents { wanted, problem }) => {
            let problem = problem.as_ref().map(super::source::problem);
            Warning::NoKernelEvents(NoKernelEvents {
                wanted: *wanted,
                problem,
            })
        }
        Warning::OwnerNotMet { named, watching } => {
            let kept = |named: &NamedOwner| match named {
                NamedOwner::Process { .. } => Some(named.clone()),
                NamedOwner::Named { .. } | NamedOwner::Group { .. } => None,
            };
            let named = named.as_ref().map(|named| any_version(named, kept));
            Warning::OwnerNotMet {
                named,
                watching: *watching,
            }
        }
        Warning::CommandFailed { .. } => Warning::CommandFailed { status: text() },
        Warning::CpuQuota {
            limit,
            times,
            time_ns,
            ..
        } => Warning::CpuQuota {
            cgroup: text(),
            limit: *limit,
            times: *times,
            time_ns: *time_ns,
        },
        Warning::ClockFallback { reason } => Warning::ClockFallback {
            reason: tsc_flaw(reason),
        },
        Warning::ClockDoubt { reason } => Warning::ClockDoubt {
            reason: tsc_flaw(reason),
        },
        Warning::CpuEndedEarly { cpu, why } => Warning::CpuEndedEarly {
            cpu: *cpu,
            why: super::ended_early(why),
        },
        Warning::OutputLost {
            delivered, lost, ..
        } => Warning::OutputLost {
            output: text(),
            delivered: *delivered,
            lost: *lost,
            why: text(),
        },
        Warning::ForcedPlacement { misfit } => Warning::ForcedPlacement {
            misfit: any_version(misfit, |misfit| match misfit {
                Misfit::TooFewCpus { .. }
                | Misfit::Quota { .. }
                | Misfit::SameCpu { .. }
                | Misfit::SameCore { .. }
                | Misfit::TooFewCores { .. }
                | Misfit::AcrossNodes { .. } => Some(misfit.clone()),
            }),
        },
        Warning::MemoryNotLocked { .. } => Warning::MemoryNotLocked { why: text() },
        Warning::JournalDiskFull { why } => Warning::JournalDiskFull {
            why: super::journal_fault(why),
        },
        Warning::JournalEnded { why } => Warning::JournalEnded {
            why: super::journal_fault(why),
        },
        Warning::AttributedAgain { by, recorded_by } => Warning::AttributedAgain {
            by: version(by),
            recorded_by: version(recorded_by),
        },
        Warning::Other(other) => {
            let id = if is_slug(&other.id) {
                other.id.clone()
            } else {
                LEFT_OUT.into()
            };
            let text = format!("Warning {id}; its text may name things and is left out.");
            Warning::worded(&id, &text)
        }
    }
}
