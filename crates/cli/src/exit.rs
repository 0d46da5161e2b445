//! Exit codes: a contract that scripts rely on.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It did what was asked.
    Ok,
    /// It failed.
    Failed,
    /// The arguments are wrong; clap ends with the same code.
    Usage,
    /// It worked, and a limit that was asked for was exceeded.
    Exceeded,
    /// Something that `--require` asked for, or that the command cannot do without, is not available.
    Unavailable,
    /// What `attach` started and followed failed: its code, or 128 and the number of the signal that ended it, as
    /// shells have it.
    Command(u8),
}

impl Exit {
    /// That of a command: `Ok` where it succeeded.
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

/// An argument that parses but cannot be meant, found only when it met the machine.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// Something that was required is missing.
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
