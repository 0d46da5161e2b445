//! Missing permissions in a user namespace: there the process may look like root.

use jitterscope_model::{SourceProblem, SourceReport, SourceStatus};
use jitterscope_platform::{Machine, UserNamespace};

/// The same report; if a permission is missing and this process is in a user namespace, it says so.
#[must_use]
pub fn in_namespace(machine: &Machine, mut report: SourceReport) -> SourceReport {
    if report.status == SourceStatus::Denied {
        let problems = report.problems.into_iter();
        report.problems = problems
            .map(|problem| problem_in_namespace(machine, problem))
            .collect();
    }
    report
}

/// The same for the problem of a denied source.
#[must_use]
pub fn problem_in_namespace(machine: &Machine, problem: SourceProblem) -> SourceProblem {
    // Lockdown refuses everybody, and a PID namespace has nothing to do with the user.
    let of_user = !matches!(
        problem,
        SourceProblem::LockedDown
            | SourceProblem::PidNamespace
            | SourceProblem::UserNamespace { .. }
    );
    match UserNamespace::of(machine).filter(|_| of_user) {
        Some(UserNamespace { user }) => SourceProblem::UserNamespace {
            user,
            problem: Box::new(problem),
        },
        None => problem,
    }
}
