//! The process that undoes an experiment whose own process has gone, however it went.
//!
//! It reads a pipe that nobody but the experiment has open. A byte there says what has been done to the
//! machine; an end of its input without the message that the experiment has ended says that it was killed.

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

/// The change may be made.
const APPLIED: u8 = b'a';
/// It is undone.
const REVERTED: u8 = b'r';
/// A command is about to make it, or to undo it; who runs that follows, as a line of JSON.
const BEGINS: u8 = b'b';
/// The experiment has ended by itself.
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
/// The machine is not as it was found.
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
                    // Cut off, it was never told that it may begin.
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
    // The recording that was cut off.
    leftovers::clean(&machine, places, &args.state_dir);
    Ok(Exit::Ok)
}

/// What undoes the change, beside knobs.
pub enum Revert<'r> {
    /// Nothing does.
    Knobs,
    /// A command, which is noted before the change is made.
    Noted,
    /// This command.
    Command(&'r str),
}

/// The guard, from the experiment's side.
pub struct Guard {
    process: Child,
    /// What undoes knobs where the guard is killed, too.
    notes: Option<Notes>,
}

impl Guard {
    /// Starts it, in a process group of its own: what ends the experiment from a terminal does not end it.
    ///
    /// # Errors
    /// It cannot be started: then nothing may be changed.
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
        let told = self
            .process
            .stdin
            .as_mut()
            .map(|pipe| pipe.write_all(bytes).and_then(|()| pipe.flush()));
        match told {
            Some(Ok(())) => Ok(()),
            _ => Err(ExperimentError::NotApplied(
                "the process that would undo a killed experiment has gone: nothing more is changed"
                    .into(),
            )),
        }
    }

    /// Ends it without undoing anything: the experiment has ended by itself.
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

/// A change of which the guard knows.
pub struct Guarded<'g> {
    /// The change.
    pub change: &'g mut dyn Change,
    /// Its guard; none where nothing on the machine is changed.
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
        // Killed meanwhile, it is ended before it is undone once more; it is undone whoever hears of that.
        let reverted = self.change.revert_telling(&mut |leader| {
            let _ = guard.tell_of(leader);
            Ok(())
        })?;
        // It is undone already; a guard that has gone is noticed before the next apply.
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
