//! What one arm has and the other has not.

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
    /// It is.
    Now,
    /// After so long at the latest.
    Within(Nanos),
    /// That is not known.
    Unknown,
}

impl InForceIn {
    /// The later of two.
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
    /// Makes it.
    ///
    /// # Errors
    /// It was not made, or only in part; reverting leaves the machine as it was found.
    fn apply(&mut self) -> Result<InForceIn, ExperimentError>;

    /// Makes it, and tells of the process that does so before that begins, where there is one. Where that cannot be
    /// told, it is not made.
    ///
    /// # Errors
    /// As [`Change::apply`].
    fn apply_telling(
        &mut self,
        _begins: &mut dyn FnMut(&Leader) -> Result<(), ExperimentError>,
    ) -> Result<InForceIn, ExperimentError> {
        self.apply()
    }

    /// Undoes it; nothing where it is not made.
    ///
    /// # Errors
    /// The machine is not as it was found.
    fn revert(&mut self) -> Result<InForceIn, ExperimentError>;

    /// Undoes it, and tells of the process that does so before that begins, where there is one. Where that cannot be
    /// told, it is not undone.
    ///
    /// # Errors
    /// As [`Change::revert`].
    fn revert_telling(
        &mut self,
        _begins: &mut dyn FnMut(&Leader) -> Result<(), ExperimentError>,
    ) -> Result<InForceIn, ExperimentError> {
        self.revert()
    }

    /// How long it takes at most to be in force, before it was ever made.
    fn making(&self) -> InForceIn {
        InForceIn::Now
    }

    /// How long its undoing takes at most, before it was ever made.
    fn undoing(&self) -> InForceIn {
        InForceIn::Now
    }

    /// Of that what comes back a while after it is undone, and then shows in a recording.
    fn shown_by_recording(&self) -> Vec<Predicted> {
        Vec::new()
    }

    /// Whether something outside of a recording shows that an arm is in force: [`Change::shows`] is asked then, until
    /// it says so, instead of waiting.
    fn is_shown(&self, _arm: Arm) -> bool {
        false
    }

    /// Whether that shows it now, which takes `patience` at most.
    ///
    /// # Errors
    /// It cannot be asked.
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

    /// What it is to remove, as the knobs that it sets or its user say.
    fn predicted(&self) -> Vec<Predicted> {
        Vec::new()
    }

    /// What it is, in a few words.
    fn describe(&self) -> String;
}

/// When what a command did is in force, as its user says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// A command that succeeds once it is.
    pub seen_by: Option<String>,
    /// How long it takes at most; zero where it is at once.
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

/// Two commands of the user's.
#[derive(Debug)]
pub struct CommandChange {
    apply: String,
    revert: String,
    applied: bool,
    notes: Option<Notes>,
    /// When the change is in force.
    making: Declared,
    /// When its undoing is.
    undoing: Declared,
    /// What it is to remove.
    removes: Vec<Predicted>,
}

impl CommandChange {
    /// Of a command that makes the change and one that undoes it. Each is given to `sh -c`. What undoes it is
    /// noted before it is made, where there is a place for that.
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

    /// Says when it is in force, when its undoing is, and what it is to remove.
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

/// A command that could not be found or started, by what a shell ends with.
const NOT_RUN: [i32; 2] = [126, 127];
/// How often it is looked whether a command has ended.
const LOOK: Duration = Duration::from_millis(10);

/// Whether a command of the user's succeeds; one that takes longer than `patience` does not, and is ended with what
/// it started.
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
            // It has not been waited for: the number is still its own.
            if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait();
            return Ok(false);
        }
        std::thread::sleep(LOOK);
    }
}

/// The folder that commands run in.
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
            // Half of it may be done when it fails.
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

/// Nothing on the machine: what differs is given to the subject, as an environment variable is.
#[derive(Clone, Debug)]
pub struct NoChange {
    /// What differs, in a few words.
    pub what: String,
    /// What it is to remove.
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
        // What it started goes with it.
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
    fn who_undoes_a_change_is_told_before_that_begins() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("changed");
        let (apply, revert) = (
            format!("touch {}", file.display()),
            format!("rm {}", file.display()),
        );
        let mut change = CommandChange::new(&apply, &revert, None);
        let mut told = Vec::new();
        let mut begins = |leader: &Leader| {
            assert!(leader.is_alive() && file.exists(), "it has not begun");
            told.push(leader.clone());
            Ok(())
        };
        change.revert_telling(&mut begins).unwrap();
        change.apply().unwrap();
        change.revert_telling(&mut begins).unwrap();
        assert!(!file.exists());
        assert_eq!(told.len(), 1, "where there is nothing to undo, nobody does");
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
