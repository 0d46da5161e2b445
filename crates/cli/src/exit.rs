//! Exit codes: a contract with scripts.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Ok,
    Failed,
    /// Wrong arguments; clap uses the same code.
    Usage,
    /// The command worked, and a requested limit was exceeded.
    Exceeded,
    /// A source is unavailable that `--require` names or the command needs.
    Unavailable,
    /// The command that `attach` or `guard` started failed: its code, or 128 plus the number of the signal that ended it, as in
    /// shells.
    Command(u8),
}

impl Exit {
    /// The outcome of a followed command: `Ok` if it succeeded.
    pub fn of_command(status: ExitStatus) -> Exit {
        let signal = status.signal().map(|signal| 128 + signal);
        match status
            .code()
            .or(signal)
            .map(|code| u8::try_from(code).unwrap_or(u8::MAX))
        {
            Some(0) => Exit::Ok,
            Some(code) => Exit::Command(code),
            None => Exit::Failed,
        }
    }
}

impl Exit {
    /// The outcome of two steps: an exceeded limit takes precedence over a missing source, as in conditions; otherwise
    /// the first that is not `Ok`.
    pub fn and(self, later: Exit) -> Exit {
        match (self, later) {
            (Exit::Ok | Exit::Unavailable, Exit::Exceeded) | (Exit::Ok, _) => later,
            _ => self,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Ok => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Exceeded => 3,
            Exit::Unavailable => 4,
            Exit::Command(code) => code,
        })
    }
}

/// An argument that parses but is invalid on this machine.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// A required source is missing.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnavailableError(pub String);

/// The exit code of an error.
pub fn of(error: &anyhow::Error) -> Exit {
    if error.is::<UsageError>() {
        Exit::Usage
    } else if error.is::<UnavailableError>() {
        Exit::Unavailable
    } else {
        Exit::Failed
    }
}
