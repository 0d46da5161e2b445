//! What can go wrong with an experiment.

use jitterscope_platform::FileError;
use jitterscope_tune::{Applied, GoalError, RolledBack, SkipReason};
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

/// Why a knob that was asked for cannot be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Untried {
    /// It is applied already: there would be nothing to compare with.
    Applied,
    /// A plan has no change for it; why, where the plan says so.
    NoChange(Option<SkipReason>),
    /// It needs no reboot, and was to be tried across one.
    NeedsNoReboot,
}

/// How a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandFailure {
    /// It was not started.
    #[error("cannot be started: {0}")]
    NotStarted(io::Error),
    /// It was, and `/proc` does not list it.
    #[error("cannot be started: /proc does not list it")]
    NotSeen,
    /// Its end cannot be waited for.
    #[error("cannot be waited for: {0}")]
    NotWaitedFor(io::Error),
    /// The shell found nothing to run.
    #[error("cannot be run ({0})")]
    NotRun(ExitStatus),
    /// It ended with an error.
    #[error("{status}{}", if said.is_empty() { String::new() } else { format!(": {said}") })]
    Ended {
        /// How.
        status: ExitStatus,
        /// What it said on standard error, the beginning of it.
        said: String,
    },
}

/// Why there is no answer, or the machine may not be as it was.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// A command that applies or reverts failed.
    #[error("{command:?} {failure}")]
    Command {
        /// As given.
        command: String,
        /// How.
        failure: CommandFailure,
    },
    /// A command that applies or reverts asked at the terminal.
    #[error(
        "{command:?} wants the terminal, as sudo does for a password, and was ended: commands of an experiment run \
         where nobody can answer. Run the experiment as root, or let the command need no answer (sudo -n)"
    )]
    WantsTerminal {
        /// As given.
        command: String,
    },
    /// The change could not be made.
    #[error("{0}")]
    NotApplied(String),
    /// A knob cannot be tried. The sentence for its reason is view's.
    #[error("{knob} cannot be tried")]
    Untried {
        /// Which.
        knob: String,
        /// Why.
        why: Untried,
    },
    /// Of knobs that are set at boot this boot has some.
    #[error(
        "{} is in force in this boot and {} is not: each boot of the experiment has all of them or none",
        with.join(", "),
        without.join(", ")
    )]
    PartInForce {
        /// Those that it has.
        with: Vec<String>,
        /// The others.
        without: Vec<String>,
    },
    /// A change that is set at boot was to be made in this one.
    #[error("{change} needs a reboot")]
    NeedsReboot {
        /// What it is.
        change: String,
    },
    /// What this boot is compared by with the next one cannot be read.
    #[error("what this boot is compared by cannot be read: {0}")]
    MachineUnknown(FileError),
    /// Which CPUs are online is not known.
    #[error(transparent)]
    Goal(#[from] GoalError),
    /// The folder that commands run in.
    #[error("the folder that the command runs in is gone: {0}")]
    NoFolder(io::Error),
    /// The kernel refused a change.
    #[error("{} ({}) was refused", .0.knob, .0.path)]
    Refused(Box<Applied>),
    /// A command of a killed experiment still runs, and cannot be ended.
    #[error(
        "the command of a killed experiment still runs as process group {group} and {}: end it, then undo the change",
        refused.as_ref().map_or_else(|| "does not end".to_owned(), |error| format!("may not be ended ({error})"))
    )]
    StillRuns {
        /// Its process group.
        group: i32,
        /// What the system said, where it refused to end it.
        refused: Option<io::Error>,
    },
    /// A change of a knob could not be undone.
    #[error(
        "{} ({}) is not undone; the machine is not as it was found: run `jitterscope tune rollback`",
        .0.knob,
        .0.path
    )]
    NotUndone(Box<RolledBack>),
    /// The machine is not as it was found.
    #[error("{0}; the machine is not as it was found: run `jitterscope tune rollback`")]
    NotReverted(String),
    /// The knobs cannot be planned.
    #[error(transparent)]
    Plan(#[from] jitterscope_tune::PlanError),
    /// The journal.
    #[error(transparent)]
    State(#[from] jitterscope_tune::StateError),
    /// What a command changed cannot be noted.
    #[error(transparent)]
    Note(#[from] crate::NoteError),
    /// An apply that is in force.
    #[error(transparent)]
    Apply(#[from] jitterscope_tune::ApplyError),
    /// A run could not be made or read.
    #[error("a run of arm {arm} failed: {why}")]
    Run {
        /// Which.
        arm: char,
        /// What was wrong.
        why: String,
    },
    /// The session's file.
    #[error("{}: {source}", path.display())]
    Session {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The session's file makes no sense.
    #[error("{}, line {line}: {why}; start the experiment anew without --resume", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
}

impl ExperimentError {
    /// Whether what was asked for cannot be tried, so that nothing was changed.
    #[must_use]
    pub fn is_of_what_was_asked(&self) -> bool {
        matches!(
            self,
            ExperimentError::NotApplied(_)
                | ExperimentError::Untried { .. }
                | ExperimentError::PartInForce { .. }
                | ExperimentError::MachineUnknown(_)
                | ExperimentError::Goal(_)
                | ExperimentError::Plan(_)
        )
    }

    /// Whether the change may still be made, in part at least.
    #[must_use]
    pub fn leaves_the_change(&self) -> bool {
        matches!(
            self,
            ExperimentError::NotReverted(_)
                | ExperimentError::NotUndone(_)
                | ExperimentError::Command { .. }
                | ExperimentError::WantsTerminal { .. }
        )
    }
}
