//! The counters in `/proc`.

use crate::counters::{SchedstatError, parse_schedstat, parse_stat, parse_table};
use jitterscope_model::{SourceLoss, SourceProblem, SourceReport, SourceStatus};
use jitterscope_platform::Machine;

/// A source: its name, its file, the effect of its absence.
struct Source {
    name: &'static str,
    path: &'static str,
    loss: SourceLoss,
}

pub(super) fn all(machine: &Machine) -> Vec<SourceReport> {
    let table = |text: &str, path: String| match parse_table(text) {
        rows if rows.is_empty() => Err(SourceProblem::NoCpuRow { path }),
        _ => Ok(()),
    };
    let of = |name, path, loss| Source { name, path, loss };
    vec![
        one(
            machine,
            of(
                "interrupts",
                "/proc/interrupts",
                SourceLoss::InterruptCounts,
            ),
            table,
        ),
        one(
            machine,
            of("softirqs", "/proc/softirqs", SourceLoss::SoftirqCounts),
            table,
        ),
        one(
            machine,
            of("steal", "/proc/stat", SourceLoss::StolenTime),
            |text, path| {
                let has_steal = parse_stat(text).iter().any(|row| &*row.name == "steal");
                if has_steal {
                    Ok(())
                } else {
                    Err(SourceProblem::NoStealColumn { path })
                }
            },
        ),
        one(
            machine,
            of("schedstat", "/proc/schedstat", SourceLoss::RunQueueDelays),
            |text, path| match parse_schedstat(text) {
                Ok(_) => Ok(()),
                Err(SchedstatError::Version(version)) => {
                    Err(SourceProblem::CountersVersion { path, version })
                }
            },
        ),
    ]
}

/// Passes the text and the path of the file to `check`.
fn one(
    machine: &Machine,
    source: Source,
    check: impl Fn(&str, String) -> Result<(), SourceProblem>,
) -> SourceReport {
    let path = source.path.to_owned();
    let (status, problem) = match machine.read(source.path) {
        Ok(text) => match check(&text, path) {
            Ok(()) => return SourceReport::available(source.name),
            Err(problem) => (SourceStatus::Absent, problem),
        },
        Err(error) if error.is_absent() => (
            SourceStatus::Absent,
            SourceProblem::CountersMissing { path },
        ),
        Err(error) => {
            let status = if error.is_denied() {
                SourceStatus::Denied
            } else {
                SourceStatus::Absent
            };
            let path = error.path.display().to_string();
            (
                status,
                SourceProblem::CountersUnreadable {
                    path,
                    system: error.source.to_string(),
                },
            )
        }
    };
    SourceReport::limited(source.name, status, problem, source.loss)
}
