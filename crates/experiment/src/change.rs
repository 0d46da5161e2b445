//! The difference between the two arms.

use crate::leader::shell_in;
use crate::{Arm, BootArm, CommandFailure, ExperimentError, Leader, Notes, Predicted};
use jitterscope_model::Nanos;
use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// When a change, or its undoing, is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InForceIn {
    Now,
    /// At most this long after.
    Within(Nanos),
    Unknown,
}

impl InForceIn {
    #[must_use]
    pub fn and(self, other: InForceIn) -> InForceIn {
        match (self, other) {
            (InForceIn::Unknown, _) | (_, InForceIn::Unknown) => InForceIn::Unknown,
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
    /// Makes the change.
    ///
    /// # Errors
    /// It was not made, or only in part; reverting restores the machine.
    fn apply(&mut self) -> Result<InForceIn, ExperimentError>;

    /// Makes the change. If a process makes it, the callback receives that process before it begins; if the callback
    /// fails, the change is not made.
    ///
    /// # Errors
    /// See [`Change::apply`].
    fn apply_telling(
        &mut self,
        _begins: &mut dyn FnMut(&Leader) -> Result<(), ExperimentError>,
    ) -> Result<InForceIn, ExperimentError> {
        self.apply()
    }

    /// Undoes the change; does nothing if it is not made.
    ///
    /// # Errors
    /// The machine is not as it was found.
    fn revert(&mut self) -> Result<InForceIn, ExperimentError>;

    /// Undoes the change. If a process undoes it, the callback receives that process before it begins; if the callback
    /// fails, the change is not undone.
    ///
    /// # Errors
    /// See [`Change::revert`].
    fn revert_telling(
        &mut self,
        _begins: &mut dyn FnMut(&Leader) -> Result<(), ExperimentError>,
    ) -> Result<InForceIn, ExperimentError> {
        self.revert()
    }

    /// Maximum time until it is in force, known before it was ever made.
    fn making(&self) -> InForceIn {
        InForceIn::Now
    }

    /// Maximum time until its undoing is in force, known before it was ever made.
    fn undoing(&self) -> InForceIn {
        InForceIn::Now
    }

    /// What the change removes that reappears only some time after it is undone, and then shows in a recording.
    fn shown_by_recording(&self) -> Vec<Predicted> {
        Vec::new()
    }

    /// Whether something other than a recording shows that an arm is in force. If so, [`Change::shows`] is called until
    /// it returns true, instead of a wait.
    fn is_shown(&self, _arm: Arm) -> bool {
        false
    }

    /// Whether the arm is shown to be in force now. Takes at most `patience`.
    ///
    /// # Errors
    /// The check failed to run.
    fn shows(
        &mut self,
        _arm: Arm,
        _patience: Duration,
        _stop: &AtomicBool,
    ) -> Result<bool, ExperimentError> {
        Ok(true)
    }

    /// Which arm can be measured in this boot.
    fn boot(&self) -> BootArm {
        BootArm::Either
    }

    /// What the change should remove, as declared by its knobs or its user.
    fn predicted(&self) -> Vec<Predicted> {
        Vec::new()
    }

    /// The knobs that it sets, including those that others need.
    fn knobs(&self) -> &[String] {
        &[]
    }

    fn describe(&self) -> String;
}

/// The user's declaration of when a command's effect is in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// A command that succeeds once it is in force.
    pub seen_by: Option<String>,
    /// Maximum time until then; zero if immediate.
    pub within: Nanos,
}

impl Declared {
    fn in_force(&self) -> InForceIn {
        if self.within == Nanos::ZERO {
            InForceIn::Now
        } else {
            InForceIn::Within(self.within)
        }
    }
}

/// A change made by two commands of the user.
#[derive(Debug)]
pub struct CommandChange {
    apply: String,
    revert: String,
    applied: bool,
    notes: Option<Notes>,
    /// When the change is in force.
    making: Declared,
    /// When its undoing is in force.
    undoing: Declared,
    /// What it should remove.
    removes: Vec<Predicted>,
}

impl CommandChange {
    /// A change from a command that makes it and one that undoes it, each run by `sh -c`. With `notes`, the undoing
    /// command is noted before the change is made.
    #[must_use]
    pub fn new(apply: &str, revert: &str, notes: Option<Notes>) -> CommandChange {
        CommandChange {
            apply: apply.to_owned(),
            revert: revert.to_owned(),
            applied: false,
            notes,
            making: Declared::default(),
            undoing: Declared::default(),
            removes: Vec::new(),
        }
    }

    /// Declares when the change and its undoing are in force, and what the change should remove.
    #[must_use]
    pub fn declaring(
        self,
        applied: Declared,
        reverted: Declared,
        removes: Vec<Predicted>,
    ) -> CommandChange {
        CommandChange {
            making: applied,
            undoing: reverted,
            removes,
            ..self
        }
    }

    /// When an arm is in force.
    fn declared(&self, arm: Arm) -> &Declared {
        match arm {
            Arm::A => &self.undoing,
            Arm::B => &self.making,
        }
    }
}

/// Exit codes of a shell that could not find or start a command.
const NOT_RUN: [i32; 2] = [126, 127];
/// How often a command is checked for its end.
const LOOK: Duration = Duration::from_millis(10);

/// Whether a command of the user succeeds. A command that takes longer than `patience` counts as failed; it is ended
/// along with its children.
fn succeeds(command: &str, patience: Duration, stop: &AtomicBool) -> Result<bool, ExperimentError> {
    let failed = |failure| ExperimentError::Command {
        command: command.to_owned(),
        failure,
    };
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = shell
        .process_group(0)
        .spawn()
        .map_err(|error| failed(CommandFailure::NotStarted(error)))?;
    let until = Instant::now() + patience;
    loop {
        let ended = child
            .try_wait()
            .map_err(|error| failed(CommandFailure::NotWaitedFor(error)))?;
        if let Some(status) = ended {
            return match status.code() {
                Some(code) if NOT_RUN.contains(&code) => {
                    Err(failed(CommandFailure::NotRun(status)))
                }
                _ => Ok(status.success()),
            };
        }
        if Instant::now() >= until || stop.load(Ordering::Relaxed) {
            // It has not been reaped, so its id is still its own.
            if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait();
            return Ok(false);
        }
        std::thread::sleep(LOOK);
    }
}

/// The folder in which commands run.
fn here() -> Result<PathBuf, ExperimentError> {
    std::env::current_dir().map_err(ExperimentError::NoFolder)
}

impl Change for CommandChange {
    fn apply(&mut self) -> Result<InForceIn, ExperimentError> {
        self.apply_telling(&mut |_| Ok(()))
    }

    fn apply_telling(
        &mut self,
        begins: &mut dyn FnMut(&Leader) -> Result<(), ExperimentError>,
    ) -> Result<InForceIn, ExperimentError> {
        let folder = here()?;
        let CommandChange {
            apply,
            revert,
            applied,
            notes,
            ..
        } = self;
        let mut noted = |leader: &Leader| {
            begins(leader)?;
            if let Some(notes) = notes {
                notes.write(revert, &folder, Some(leader))?;
            }
            // When it fails, it may be half done.
            *applied = true;
            Ok(())
        };
        shell_in(apply, None, &mut noted)?;
        Ok(self.making.in_force())
    }

    fn revert(&mut self) -> Result<InForceIn, ExperimentError> {
        self.revert_telling(&mut |_| Ok(()))
    }

    fn revert_telling(
        &mut self,
        begins: &mut dyn FnMut(&Leader) -> Result<(), ExperimentError>,
    ) -> Result<InForceIn, ExperimentError> {
        if !self.applied {
            return Ok(InForceIn::Now);
        }
        let mut noted = |leader: &Leader| {
            begins(leader)?;
            if let (Some(notes), Ok(folder)) = (&self.notes, here()) {
                notes.reverting(&self.revert, &folder, leader);
            }
            Ok(())
        };
        shell_in(&self.revert, None, &mut noted)?;
        self.applied = false;
        if let Some(notes) = &self.notes {
            notes.remove()?;
        }
        Ok(self.undoing())
    }

    fn undoing(&self) -> InForceIn {
        self.undoing.in_force()
    }

    fn making(&self) -> InForceIn {
        self.making.in_force()
    }

    fn is_shown(&self, arm: Arm) -> bool {
        self.declared(arm).seen_by.is_some()
    }

    fn shows(
        &mut self,
        arm: Arm,
        patience: Duration,
        stop: &AtomicBool,
    ) -> Result<bool, ExperimentError> {
        let command = self.declared(arm).seen_by.as_deref();
        command.map_or(Ok(true), |command| succeeds(command, patience, stop))
    }

    fn shown_by_recording(&self) -> Vec<Predicted> {
        self.removes.clone()
    }

    fn predicted(&self) -> Vec<Predicted> {
        self.removes.clone()
    }

    fn describe(&self) -> String {
        self.apply.clone()
    }
}

/// No change of the machine: the arms differ in what the subject is given, such as an environment variable.
#[derive(Clone, Debug)]
pub struct NoChange {
    /// A short description of the difference.
    pub what: String,
    /// What it should remove.
    pub removes: Vec<Predicted>,
}

impl Change for NoChange {
    fn apply(&mut self) -> Result<InForceIn, ExperimentError> {
        Ok(InForceIn::Now)
    }

    fn revert(&mut self) -> Result<InForceIn, ExperimentError> {
        Ok(InForceIn::Now)
    }

    fn predicted(&self) -> Vec<Predicted> {
        self.removes.clone()
    }

    fn describe(&self) -> String {
        self.what.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(300);

    #[test]
    fn what_shows_a_change_is_asked_and_never_waited_for_beyond_its_time() {
        let asked =
            |command: &str| succeeds(command, Duration::from_secs(60), &AtomicBool::new(false));
        assert!(asked("true").unwrap());
        assert!(!asked("exit 1").unwrap());
        let error = asked("jitterscope-no-such-command")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("jitterscope-no-such-command") && error.contains("cannot be run"),
            "{error}"
        );
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("later");
        // Its children end with it.
        let slow = format!("(sleep 2; touch {}) & wait", file.display());
        let begun = Instant::now();
        assert!(!succeeds(&slow, SOON, &AtomicBool::new(false)).unwrap());
        assert!(!succeeds(&slow, Duration::from_secs(60), &AtomicBool::new(true)).unwrap());
        while begun.elapsed() < Duration::from_secs(3) {
            std::thread::sleep(SOON);
        }
        assert!(!file.exists());
    }

    #[test]
    fn the_guard_knows_a_change_before_it_begins() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("changed");
        let (apply, revert) = (
            format!("touch {}", file.display()),
            format!("rm {}", file.display()),
        );
        let mut change = CommandChange::new(&apply, &revert, None);
        let mut reported = Vec::new();
        let mut begins = |leader: &Leader| {
            assert!(leader.is_alive() && file.exists(), "it has not begun");
            reported.push(leader.clone());
            Ok(())
        };
        change.revert_telling(&mut begins).unwrap();
        change.apply().unwrap();
        change.revert_telling(&mut begins).unwrap();
        assert!(!file.exists());
        assert_eq!(
            reported.len(),
            1,
            "where there is nothing to undo, nobody does"
        );
    }

    #[test]
    fn a_command_declares_when_it_and_its_undoing_are_in_force() {
        let within = |seconds: u64| Declared {
            within: Nanos(seconds * 1_000_000_000),
            seen_by: None,
        };
        let x = vec![Predicted::Pattern("x".into())];
        let mut change =
            CommandChange::new("true", "true", None).declaring(within(1), within(2), x.clone());
        assert_eq!(change.making(), InForceIn::Within(Nanos(1_000_000_000)));
        assert_eq!(change.undoing(), InForceIn::Within(Nanos(2_000_000_000)));
        assert_eq!(
            change.revert().unwrap(),
            InForceIn::Now,
            "there is nothing to undo"
        );
        assert_eq!(
            change.apply().unwrap(),
            InForceIn::Within(Nanos(1_000_000_000))
        );
        assert_eq!(
            change.revert().unwrap(),
            InForceIn::Within(Nanos(2_000_000_000))
        );
        assert!(!change.is_shown(Arm::A) && !change.is_shown(Arm::B));
        assert_eq!(
            (change.predicted(), change.shown_by_recording()),
            (x.clone(), x)
        );
    }
}
