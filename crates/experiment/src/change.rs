//! What one arm has and the other has not.

use crate::{ExperimentError, Notes};
use jitterscope_model::Nanos;
use std::path::Path;
use std::process::{Command, Stdio};

/// When a change, or its undoing, is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InForceIn {
    /// It is.
    Now,
    /// After so long at the latest.
    Within(Nanos),
    /// That cannot be told; why.
    Unknown(String),
}

impl InForceIn {
    /// The later of two.
    #[must_use]
    pub fn and(self, other: InForceIn) -> InForceIn {
        match (self, other) {
            (InForceIn::Unknown(why), _) | (_, InForceIn::Unknown(why)) => InForceIn::Unknown(why),
            (InForceIn::Within(a), InForceIn::Within(b)) => InForceIn::Within(a.max(b)),
            (InForceIn::Within(a), InForceIn::Now) | (InForceIn::Now, InForceIn::Within(a)) => {
                InForceIn::Within(a)
            }
            (InForceIn::Now, InForceIn::Now) => InForceIn::Now,
        }
    }
}

/// A change that can be made and undone.
pub trait Change {
    /// Makes it.
    ///
    /// # Errors
    /// It was not made, or only in part; reverting leaves the machine as it was found.
    fn apply(&mut self) -> Result<InForceIn, ExperimentError>;

    /// Undoes it; nothing where it is not made.
    ///
    /// # Errors
    /// The machine is not as it was found.
    fn revert(&mut self) -> Result<InForceIn, ExperimentError>;

    /// How long its undoing takes at most, before it was ever made.
    fn undoing(&self) -> InForceIn {
        InForceIn::Now
    }

    /// Of its knobs those whose undoing takes a while and shows in a recording, by what they remove.
    fn shown_by_recording(&self) -> Vec<String> {
        Vec::new()
    }

    /// The knobs that it sets, which declare what they remove.
    fn knobs(&self) -> Vec<String> {
        Vec::new()
    }

    /// What it is, in a few words.
    fn describe(&self) -> String;
}

/// Two commands of the user's.
#[derive(Debug)]
pub struct CommandChange {
    apply: String,
    revert: String,
    applied: bool,
    notes: Option<Notes>,
}

impl CommandChange {
    /// Of a command that makes the change and one that undoes it. Each is given to `sh -c`. What undoes it is
    /// noted before it is made, where there is a place for that.
    #[must_use]
    pub fn new(apply: &str, revert: &str, notes: Option<Notes>) -> CommandChange {
        CommandChange { apply: apply.to_owned(), revert: revert.to_owned(), applied: false, notes }
    }
}

/// Runs a command of the user's, here or in a folder.
pub(crate) fn shell_in(command: &str, folder: Option<&Path>) -> Result<(), ExperimentError> {
    let failed = |what: String| ExperimentError::Command { command: command.to_owned(), what };
    let mut shell = Command::new("sh");
    // What it prints is no result of ours.
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null());
    if let Some(folder) = folder {
        shell.current_dir(folder);
    }
    let output = shell.output().map_err(|error| failed(format!("cannot be started: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(failed(if said.is_empty() {
        output.status.to_string()
    } else {
        format!("{}: {said}", output.status)
    }))
}

impl Change for CommandChange {
    fn apply(&mut self) -> Result<InForceIn, ExperimentError> {
        if let Some(notes) = &self.notes {
            let folder = std::env::current_dir().map_err(|error| {
                ExperimentError::NotApplied(format!("the folder that the command runs in is gone: {error}"))
            })?;
            notes.write(&self.revert, &folder)?;
        }
        // Half of it may be done when it fails.
        self.applied = true;
        shell_in(&self.apply, None).map(|()| InForceIn::Now)
    }

    fn revert(&mut self) -> Result<InForceIn, ExperimentError> {
        if self.applied {
            shell_in(&self.revert, None)?;
            self.applied = false;
            if let Some(notes) = &self.notes {
                notes.remove()?;
            }
        }
        Ok(InForceIn::Now)
    }

    fn describe(&self) -> String {
        self.apply.clone()
    }
}

/// Nothing on the machine: what differs is given to the subject, as an environment variable is.
#[derive(Clone, Debug)]
pub struct NoChange(
    /// What differs, in a few words.
    pub String,
);

impl Change for NoChange {
    fn apply(&mut self) -> Result<InForceIn, ExperimentError> {
        Ok(InForceIn::Now)
    }

    fn revert(&mut self) -> Result<InForceIn, ExperimentError> {
        Ok(InForceIn::Now)
    }

    fn describe(&self) -> String {
        self.0.clone()
    }
}
