//! Errors of an experiment.

use jitterscope_platform::FileError;
use jitterscope_tune::{Applied, GoalError, RolledBack, SkipReason};
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

/// Why a requested knob cannot be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Untried {
    /// It is applied already, so there is nothing to compare with.
    Applied,
    /// A plan has no change for it, with the plan's reason if it gives one.
    NoChange(Option<SkipReason>),
    /// It needs no reboot, but was to be tried across one.
    NeedsNoReboot,
}

#[derive(Debug, thiserror::Error)]
pub enum CommandFailure {
    #[error("cannot be started: {0}")]
    NotStarted(io::Error),
    /// It was started, but `/proc` does not list it.
    #[error("cannot be started: /proc does not list it")]
    NotSeen,
    /// Waiting for its end failed.
    #[error("cannot be waited for: {0}")]
    NotWaitedFor(io::Error),
    /// The shell found nothing to run.
    #[error("cannot be run ({0})")]
    NotRun(ExitStatus),
    /// It ended with an error.
    #[error("{status}{}", if said.is_empty() { String::new() } else { format!(": {said}") })]
    Ended {
        status: ExitStatus,
        /// The beginning of its standard error output.
        said: String,
    },
}

/// Why there is no result, or why the machine may not be restored.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// A command that applies or reverts failed.
    #[error("{command:?} {failure}")]
    Command {
        command: String,
        failure: CommandFailure,
    },
    /// A command that applies or reverts wanted input from the terminal.
    #[error(
        "{command:?} wants the terminal, as sudo does for a password, and was ended: commands of an experiment run \
         where nobody can answer. Run the experiment as root, or let the command need no answer (sudo -n)"
    )]
    WantsTerminal { command: String },
    #[error("{0}")]
    NotApplied(String),
    /// A knob cannot be tried. View has the sentence for the reason.
    #[error("{knob} cannot be tried")]
    Untried { knob: String, why: Untried },
    /// This boot has some of several boot knobs, but not all.
    #[error(
        "{} is in force in this boot and {} is not: each boot of the experiment has all of them or none",
        with.join(", "),
        without.join(", ")
    )]
    PartInForce {
        with: Vec<String>,
        without: Vec<String>,
    },
    /// A change that is set at boot was to be made in this one.
    #[error("{change} needs a reboot")]
    NeedsReboot { change: String },
    /// The properties by which this boot is compared with the next cannot be read.
    #[error("what this boot is compared by cannot be read: {0}")]
    MachineUnknown(FileError),
    /// The list of online CPUs cannot be read.
    #[error(transparent)]
    Goal(#[from] GoalError),
    /// The folder of the commands is unavailable.
    #[error("the folder that the command runs in is gone: {0}")]
    NoFolder(io::Error),
    /// The kernel refused a change.
    #[error("{} ({}) was refused", .0.knob, .0.path)]
    Refused(Box<Applied>),
    /// A command of a killed experiment still runs and cannot be ended.
    #[error(
        "the command of a killed experiment still runs as process group {group} and {}: end it, then undo the change",
        refused.as_ref().map_or_else(|| "does not end".to_owned(), |error| format!("may not be ended ({error})"))
    )]
    StillRuns {
        group: i32,
        /// The system's error when it refused to end it.
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
    /// Something failed, and then the change could not be undone either.
    #[error("{first}; undoing the change failed, too: {left}")]
    Left {
        first: Box<ExperimentError>,
        left: Box<ExperimentError>,
    },
    /// The knobs cannot be planned.
    #[error(transparent)]
    Plan(#[from] jitterscope_tune::PlanError),
    #[error(transparent)]
    State(#[from] jitterscope_tune::StateError),
    /// The change of a command cannot be noted.
    #[error(transparent)]
    Note(#[from] crate::NoteError),
    /// An earlier apply is in force.
    #[error(transparent)]
    Apply(#[from] jitterscope_tune::ApplyError),
    /// A run could not be made or read.
    #[error("a run of arm {arm} failed: {why}")]
    Run { arm: char, why: String },
    #[error("{}: {source}", path.display())]
    Session {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The session's file is invalid.
    #[error("{}, line {line}: {why}; start the experiment anew without --resume", path.display())]
    Damaged {
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        why: String,
    },
}

impl ExperimentError {
    /// Whether the request is impossible, so that nothing was changed.
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

    /// Whether the change may still be made, at least in part.
    #[must_use]
    pub fn leaves_the_change(&self) -> bool {
        if let ExperimentError::Left { left, .. } = self {
            return left.leaves_the_change();
        }
        matches!(
            self,
            ExperimentError::NotReverted(_)
                | ExperimentError::NotUndone(_)
                | ExperimentError::Command { .. }
                | ExperimentError::WantsTerminal { .. }
        )
    }
}
