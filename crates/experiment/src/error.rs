//! What can go wrong with an experiment.

use std::io;
use std::path::PathBuf;

/// Why there is no answer, or the machine may not be as it was.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// A command that applies or reverts failed.
    #[error("{command:?} {what}")]
    Command {
        /// As given.
        command: String,
        /// How it ended.
        what: String,
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
    /// The knobs could not be applied.
    #[error("{0}")]
    NotApplied(String),
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
