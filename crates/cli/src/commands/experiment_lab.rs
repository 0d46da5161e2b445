//! What an experiment measures: a probe, or a command of the user's.

use super::machine_tuning;
use crate::progress::ProgressLine;
use jitterscope_analyze::compare::ComparedRun;
use jitterscope_experiment::{Arm, ExperimentError, Subject};
use jitterscope_model::{CpuSet, Nanos};
use jitterscope_platform::{Machine, Topology};
use jitterscope_recording::{AttachSettings, RecordSettings, Target, attach, record};
use jitterscope_store::remove;
use jitterscope_view::compare::load_compared;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

fn letter(arm: Arm) -> char {
    match arm {
        Arm::A => 'A',
        Arm::B => 'B',
    }
}

fn failed(arm: Arm, why: impl std::fmt::Display) -> ExperimentError {
    ExperimentError::Run { arm: letter(arm), why: why.to_string() }
}

/// A run that was just made; none where it was cut short, for it is no longer like the others.
fn whole(arm: Arm, path: &Path, stop: &AtomicBool) -> Result<Option<ComparedRun>, ExperimentError> {
    if stop.load(Ordering::Relaxed) {
        remove(path).map_err(|error| failed(arm, error))?;
        return Ok(None);
    }
    load_compared(path, None).map(Some).map_err(|error| failed(arm, error))
}

/// A probe on some CPUs.
pub struct ProbeLab {
    /// The machine.
    pub machine: Machine,
    /// How each run is made; its label and tuning are set for each.
    pub settings: RecordSettings,
    /// CPUs that are measured.
    pub measured: CpuSet,
    /// What runs are called, before the arm.
    pub label: String,
    /// No talk.
    pub quiet: bool,
}

impl Subject for ProbeLab {
    fn measure(&mut self, arm: Arm, stop: &AtomicBool) -> Result<Option<ComparedRun>, ExperimentError> {
        self.settings.label = format!("{}-{}", self.label, letter(arm));
        self.settings.tuning = machine_tuning::of(&self.machine, &self.measured);
        let mut line = ProgressLine::new(self.quiet);
        let outcome = record(&self.machine, &self.settings, stop, &mut line);
        line.clear();
        whole(arm, &outcome.map_err(|error| failed(arm, error))?.path, stop)
    }

    fn load(&mut self, path: &Path) -> Result<ComparedRun, ExperimentError> {
        load_compared(path, None).map_err(|error| failed(Arm::A, error))
    }
}

/// A command of the user's, followed through the scheduler from its start to its end.
pub struct CommandLab {
    /// The machine.
    pub machine: Machine,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// `NAME=VALUE` that arm B has.
    pub env: Vec<String>,
    /// The shortest stall to keep.
    pub threshold: Nanos,
    /// What runs are called, before the arm.
    pub label: String,
    /// Where runs are kept.
    pub runs: PathBuf,
    /// No talk.
    pub quiet: bool,
}

impl Subject for CommandLab {
    fn measure(&mut self, arm: Arm, stop: &AtomicBool) -> Result<Option<ComparedRun>, ExperimentError> {
        let mut line: Vec<String> = Vec::new();
        if arm == Arm::B && !self.env.is_empty() {
            line.push("env".into());
            line.extend(self.env.iter().cloned());
        }
        line.extend(self.command.iter().cloned());
        let settings = AttachSettings {
            target: Target::Command { line, to_stderr: true },
            wait: false,
            children: true,
            duration: None,
            threshold: self.threshold,
            clock: None,
            trace_buffer_kib: 8 << 10,
            trace_limit_bytes: 64 << 20,
            tuning: machine_tuning::of(&self.machine, &Topology::read(&self.machine).online),
            label: format!("{}-{}", self.label, letter(arm)),
            runs_dir: self.runs.clone(),
            command_line: crate::args::given(),
        };
        let mut progress = ProgressLine::new(self.quiet);
        let outcome = attach(&self.machine, &settings, stop, &mut progress);
        progress.clear();
        let run = whole(arm, &outcome.map_err(|error| failed(arm, error))?.path, stop)?;
        Ok(run.map(timed))
    }

    fn load(&mut self, path: &Path) -> Result<ComparedRun, ExperimentError> {
        load_compared(path, None).map(timed).map_err(|error| failed(Arm::A, error))
    }
}

/// From the command's first thread to the end of its last.
fn timed(run: ComparedRun) -> ComparedRun {
    let time = run.duration_ns;
    run.with_wall_time(time)
}
