//! A process that undoes an experiment whose own process has gone, for any reason.
//!
//! It reads a pipe that only the experiment holds open. Each byte reports a step; the end of the input without the end
//! message means that the experiment was killed.

use super::experiment_undo::{LOCKED, undo};
use super::leftovers;
use crate::exit::Exit;
use crate::output;
use crate::places::Places;
use anyhow::Context;
use clap::Args;
use jitterscope_experiment::{Arm, Change, ExperimentError, InForceIn, Leader, Notes, Predicted};
use jitterscope_platform::Machine;
use jitterscope_tune::StateDir;
use std::io::{BufRead, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The change may be made now.
const APPLIED: u8 = b'a';
const REVERTED: u8 = b'r';
/// A command is about to make or undo the change; its process follows as a line of JSON.
const BEGINS: u8 = b'b';
/// The experiment ended normally.
const ENDED: u8 = b'e';
/// Arguments of the guard.
#[derive(Args, Debug)]
pub struct GuardArgs {
    #[arg(long)]
    state_dir: PathBuf,
    /// What undoes it is noted in the state folder.
    #[arg(long)]
    noted: bool,
    /// It is not: this command undoes it.
    #[arg(long)]
    revert: Option<String>,
}

/// Waits for the end of the experiment.
///
/// # Errors
/// The machine could not be restored.
pub fn run(args: &GuardArgs, places: &Places) -> anyhow::Result<Exit> {
    let mut applied = false;
    let mut leader: Option<Leader> = None;
    let mut pipe = std::io::stdin().lock();
    let mut byte = [0];
    loop {
        match pipe.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => match byte[0] {
                APPLIED => applied = true,
                REVERTED => applied = false,
                BEGINS => {
                    let mut line = String::new();
                    pipe.read_line(&mut line)
                        .context("the experiment cannot be heard")?;
                    // If the line is incomplete, the command never got permission to begin.
                    leader = serde_json::from_str(&line).ok();
                }
                ENDED => return Ok(Exit::Ok),
                _ => {}
            },
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    let machine = Machine::host();
    if args.noted {
        let notes = Notes::take(&args.state_dir, LOCKED)?;
        notes
            .undo(&mut |knobs| undo(&machine, &StateDir::at(&args.state_dir), knobs))
            .context(
                "the experiment was killed or could not undo its change, which is still there",
            )?;
    }
    if let Some(command) = args.revert.as_ref().filter(|_| applied) {
        if let Some(leader) = leader {
            leader.end_group()?;
        }
        let status = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status();
        let undone = status.is_ok_and(|status| status.success());
        anyhow::ensure!(
            undone,
            "the experiment was killed or could not undo its change, and {command:?} failed: it is still there"
        );
    }
    // The interrupted recording.
    leftovers::clean(&machine, places, &args.state_dir);
    Ok(Exit::Ok)
}

/// How to undo the change.
pub enum Revert<'r> {
    Knobs,
    /// A command, noted before the change is made.
    Noted,
    Command(&'r str),
}

/// The experiment's side of the guard.
pub struct Guard {
    process: Child,
    /// The record of how to undo knobs if the guard is killed, too.
    notes: Option<Notes>,
}

impl Guard {
    /// Starts the guard in its own process group, so that a signal from the terminal to the experiment does not reach
    /// it.
    ///
    /// # Errors
    /// It cannot be started; nothing may be changed then.
    pub fn start(
        state_dir: &Path,
        knobs: &[String],
        revert: Revert<'_>,
        places: &Places,
    ) -> anyhow::Result<Guard> {
        let mut command = Command::new("/proc/self/exe");
        command
            .arg("experiment-guard")
            .arg("--state-dir")
            .arg(state_dir);
        let mut notes = None;
        if !knobs.is_empty() {
            let noted = Notes::take(state_dir, LOCKED)?;
            noted.write_knobs(knobs)?;
            notes = Some(noted);
            command.arg("--noted");
        }
        match revert {
            Revert::Knobs => {}
            Revert::Noted => {
                command.arg("--noted");
            }
            Revert::Command(revert) => {
                command.arg(format!("--revert={revert}"));
            }
        }
        command.arg("--runs").arg(places.runs()?);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0);
        let process = command
            .spawn()
            .context("the process that undoes a killed experiment cannot be started")?;
        Ok(Guard { process, notes })
    }

    fn tell(&mut self, byte: u8) -> Result<(), ExperimentError> {
        self.send(&[byte])
    }

    fn tell_of(&mut self, leader: &Leader) -> Result<(), ExperimentError> {
        let mut bytes = vec![BEGINS];
        serde_json::to_writer(&mut bytes, leader)
            .map_err(|error| ExperimentError::NotApplied(error.to_string()))?;
        bytes.push(b'\n');
        self.send(&bytes)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), ExperimentError> {
        let reported = self
            .process
            .stdin
            .as_mut()
            .map(|pipe| pipe.write_all(bytes).and_then(|()| pipe.flush()));
        match reported {
            Some(Ok(())) => Ok(()),
            _ => Err(ExperimentError::NotApplied(
                "the process that would undo a killed experiment has gone: nothing more is changed"
                    .into(),
            )),
        }
    }

    /// Ends the guard without undoing anything, after a normal end.
    pub fn finish(mut self) {
        if self.tell(ENDED).is_err() {
            output::talk("the process that guards the experiment had gone before its end");
        }
        drop(self.process.stdin.take());
        let _ = self.process.wait();
        if let Some(Err(error)) = self.notes.as_ref().map(Notes::remove) {
            output::talk(error);
        }
    }
}

/// A change that the guard monitors.
pub struct Guarded<'g> {
    pub change: &'g mut dyn Change,
    /// The guard; `None` if nothing on the machine changes.
    pub guard: Option<&'g mut Guard>,
}

impl Change for Guarded<'_> {
    fn apply(&mut self) -> Result<InForceIn, ExperimentError> {
        let Some(guard) = &mut self.guard else {
            return self.change.apply();
        };
        guard.tell(APPLIED)?;
        self.change
            .apply_telling(&mut |leader| guard.tell_of(leader))
    }

    fn revert(&mut self) -> Result<InForceIn, ExperimentError> {
        let Some(guard) = &mut self.guard else {
            return self.change.revert();
        };
        // If this process is killed now, the guard ends the command before it undoes the change once more. A lost
        // message does not stop the undoing.
        let reverted = self.change.revert_telling(&mut |leader| {
            let _ = guard.tell_of(leader);
            Ok(())
        })?;
        // The change is undone already; the next apply notices a lost guard.
        let _ = guard.tell(REVERTED);
        Ok(reverted)
    }

    fn making(&self) -> InForceIn {
        self.change.making()
    }

    fn undoing(&self) -> InForceIn {
        self.change.undoing()
    }

    fn shown_by_recording(&self) -> Vec<Predicted> {
        self.change.shown_by_recording()
    }

    fn is_shown(&self, arm: Arm) -> bool {
        self.change.is_shown(arm)
    }

    fn shows(
        &mut self,
        arm: Arm,
        patience: Duration,
        stop: &AtomicBool,
    ) -> Result<bool, ExperimentError> {
        self.change.shows(arm, patience, stop)
    }

    fn predicted(&self) -> Vec<Predicted> {
        self.change.predicted()
    }

    fn describe(&self) -> String {
        self.change.describe()
    }
}
