//! The two runners of experiments: a recording of any kind, or a user's command.

use super::leftovers;
use super::machine_threshold;
use super::machine_tuning;
use crate::progress::ProgressLine;
use jitterscope_analyze::compare::ComparedRun;
use jitterscope_experiment::{Arm, ExperimentError, Runner};
use jitterscope_model::{
    ClockKind, CpuSet, Delivery, Nanos, ProbeKind, Row, RunFacts, RunManifest, Sink, SinkError,
    Subject,
};
use jitterscope_platform::{Machine, Topology};
use jitterscope_recording::pipeline::{PipelineLength, PipelineRecordSettings, record_pipeline};
use jitterscope_recording::{
    AttachSettings, Extra, Followed, Output, PassiveRecordSettings, RecordSettings, RunSettings,
    WriterThread, attach, record, record_passive,
};
use jitterscope_store::remove;
use jitterscope_view::compare::load_compared;
use jitterscope_view::{pipeline_error, record_error};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

fn letter(arm: Arm) -> char {
    match arm {
        Arm::A => 'A',
        Arm::B => 'B',
    }
}

fn failed(arm: Arm, why: impl std::fmt::Display) -> ExperimentError {
    ExperimentError::Run {
        arm: letter(arm),
        why: why.to_string(),
    }
}

/// A run that was just made; `None` if it was interrupted, because it is not comparable then.
fn whole(arm: Arm, path: &Path, stop: &AtomicBool) -> Result<Option<ComparedRun>, ExperimentError> {
    if stop.load(Ordering::Relaxed) {
        remove(path).map_err(|error| failed(arm, error))?;
        return Ok(None);
    }
    load_compared(path, None)
        .map(Some)
        .map_err(|error| failed(arm, error))
}

/// The recording of each run; label and tuning are set for each.
pub enum Recorded {
    /// A probe on some CPUs.
    Probed(RecordSettings),
    /// No probe: the CPUs are watched.
    Watched(PassiveRecordSettings),
    Piped(PipelineRecordSettings),
}

impl Recorded {
    fn run_mut(&mut self) -> &mut RunSettings {
        match self {
            Recorded::Probed(settings) => &mut settings.run,
            Recorded::Watched(settings) => &mut settings.run,
            Recorded::Piped(settings) => &mut settings.run,
        }
    }

    fn kind(&self) -> ProbeKind {
        match self {
            Recorded::Probed(settings) if settings.wakeup.is_some() => ProbeKind::Wakeup,
            Recorded::Probed(_) => ProbeKind::Spin,
            Recorded::Watched(_) => ProbeKind::Passive,
            Recorded::Piped(_) => ProbeKind::Pipeline,
        }
    }
}

/// Recordings of one kind.
pub struct ProbeRunner {
    pub machine: Machine,
    /// The settings of the recording.
    pub recorded: Recorded,
    /// The measured CPUs.
    pub measured: CpuSet,
    /// The label of runs, without the arm.
    pub label: String,
    pub quiet: bool,
}

impl ProbeRunner {
    /// Makes and reads a run as [`Runner::measure`] does, and removes it. `None` if that fails or is stopped.
    pub fn try_out(&mut self, length: Nanos, stop: &AtomicBool) -> Option<()> {
        let label = format!("{}-trial", self.label);
        let path = self.record(label, Some(length), Vec::new(), stop).ok()?;
        let read = whole(Arm::A, &path, stop);
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        remove(&path).ok()?;
        read.ok().flatten().map(drop)
    }

    /// Records, for `length` if given, else for the time in the settings.
    fn record(
        &mut self,
        label: String,
        length: Option<Nanos>,
        outputs: Vec<Output<'_>>,
        stop: &AtomicBool,
    ) -> Result<PathBuf, String> {
        let tuning = machine_tuning::of(&self.machine, &self.measured);
        let mut line = ProgressLine::new(self.quiet, self.recorded.kind());
        let machine = &self.machine;
        let run = self.recorded.run_mut();
        (run.label, run.tuning) = (label, tuning);
        let made = match &self.recorded {
            Recorded::Probed(settings) => {
                let settings = RecordSettings {
                    duration: length.unwrap_or(settings.duration),
                    ..settings.clone()
                };
                let chooses = settings.wakeup.is_none() && settings.threshold.is_none();
                let known = || {
                    machine_threshold::of_machine(
                        &settings.run.runs_dir,
                        machine,
                        settings.run.clock,
                    )
                };
                let extra = Extra {
                    outputs,
                    shortest: chooses.then(known).flatten().map(|of| of.threshold),
                    ..Extra::default()
                };
                record(machine, &settings, extra, stop, &mut line)
                    .map_err(|error| record_error(&error))
            }
            Recorded::Watched(settings) => {
                let duration = length.unwrap_or(settings.duration);
                let settings = PassiveRecordSettings {
                    duration,
                    ..settings.clone()
                };
                record_passive(machine, &settings, outputs, stop, &mut line)
                    .map_err(|error| record_error(&error))
            }
            Recorded::Piped(settings) => {
                let length = length.map_or(settings.length, PipelineLength::Time);
                let settings = PipelineRecordSettings {
                    length,
                    ..settings.clone()
                };
                record_pipeline(machine, &settings, outputs, stop, &mut line)
                    .map_err(|error| pipeline_error(&error))
            }
        };
        line.clear();
        made.map(|outcome| {
            leftovers::tell_left_behind(outcome.taken_down);
            outcome.path
        })
    }
}

/// Ends a recording as soon as the wanted culprit was seen.
struct Sight<'s> {
    seen: &'s mut (dyn FnMut(&Subject) -> bool + Send),
    found: bool,
    /// The recording's own stop flag.
    end: &'s AtomicBool,
    stop: &'s AtomicBool,
}

impl Sink for Sight<'_> {
    fn begin(&mut self, _: &RunFacts) -> Result<(), SinkError> {
        Ok(())
    }

    fn takes(&self, row: &Row<'_>) -> bool {
        matches!(row, Row::Stall(_, Some(_)))
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        for row in batch {
            if let Row::Stall(_, Some(attribution)) = row {
                self.found |= attribution
                    .parts
                    .iter()
                    .any(|part| (self.seen)(&part.culprit.subject));
            }
        }
        if self.found {
            self.end.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn tick(&mut self) -> Result<u64, SinkError> {
        if self.stop.load(Ordering::Relaxed) {
            self.end.store(true, Ordering::Relaxed);
        }
        Ok(0)
    }

    fn end(&mut self, _: &RunManifest) -> Result<Delivery, SinkError> {
        Ok(Delivery::default())
    }
}

impl Runner for ProbeRunner {
    fn measure(
        &mut self,
        arm: Arm,
        stop: &AtomicBool,
    ) -> Result<Option<ComparedRun>, ExperimentError> {
        let label = format!("{}-{}", self.label, letter(arm));
        match self.record(label, None, Vec::new(), stop) {
            Ok(path) => whole(arm, &path, stop),
            // Stopped before there was anything to record.
            Err(_) if stop.load(Ordering::Relaxed) => Ok(None),
            Err(why) => Err(failed(arm, why)),
        }
    }

    fn look_for(
        &mut self,
        seen: &mut (dyn FnMut(&Subject) -> bool + Send),
        at_most: Nanos,
        stop: &AtomicBool,
    ) -> Result<Option<bool>, ExperimentError> {
        let end = AtomicBool::new(false);
        let mut sight = Sight {
            seen,
            found: false,
            end: &end,
            stop,
        };
        let outputs = vec![Output::to("the look", &mut sight)];
        let label = format!("{}-waiting", self.label);
        let path = match self.record(label, Some(at_most), outputs, &end) {
            Ok(path) => path,
            Err(_) if stop.load(Ordering::Relaxed) => return Ok(Some(false)),
            Err(why) => return Err(failed(Arm::A, why)),
        };
        // The run belongs to neither arm.
        remove(&path).map_err(|error| failed(Arm::A, error))?;
        Ok(Some(sight.found))
    }

    fn load(&mut self, path: &Path) -> Result<ComparedRun, ExperimentError> {
        load_compared(path, None).map_err(|error| failed(Arm::A, error))
    }
}

/// A user's command, followed through the scheduler from its start to its end.
pub struct CommandRunner {
    pub machine: Machine,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// `NAME=VALUE` pairs of arm B.
    pub env: Vec<String>,
    pub threshold: Nanos,
    /// The requested clock, if any.
    pub clock: Option<ClockKind>,
    /// The label of runs, without the arm.
    pub label: String,
    /// The folder of runs.
    pub runs: PathBuf,
    pub quiet: bool,
}

impl CommandRunner {
    /// What an arm starts: the same in both except for the variables.
    fn started(&self, arm: Arm) -> Followed {
        let pair = |one: &String| {
            one.split_once('=')
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        let env = match arm {
            Arm::A => Vec::new(),
            Arm::B => self.env.iter().filter_map(pair).collect(),
        };
        Followed::Command {
            line: self.command.clone(),
            env,
            to_stderr: true,
        }
    }
}

impl Runner for CommandRunner {
    fn measure(
        &mut self,
        arm: Arm,
        stop: &AtomicBool,
    ) -> Result<Option<ComparedRun>, ExperimentError> {
        let settings = AttachSettings {
            // Its figures are the threads' waits for a CPU, which stacks would only disturb.
            stacks: false,
            run: RunSettings {
                clock: self.clock,
                trace_buffer_kib: 8 << 10,
                trace_limit_bytes: 64 << 20,
                asked: Vec::new(),
                tuning: machine_tuning::of(&self.machine, &Topology::read(&self.machine).online),
                writer: WriterThread::default(),
                label: format!("{}-{}", self.label, letter(arm)),
                runs_dir: self.runs.clone(),
                command_line: crate::given::given(),
                profile: None,
            },
            followed: self.started(arm),
            wait: false,
            most_threads: None,
            children: true,
            duration: None,
            threshold: self.threshold,
        };
        let mut progress = ProgressLine::new(self.quiet, ProbeKind::Attach);
        let outcome = attach(&self.machine, &settings, Vec::new(), stop, &mut progress);
        progress.clear();
        match outcome {
            Ok(outcome) => Ok(whole(arm, &outcome.path, stop)?.map(timed)),
            Err(_) if stop.load(Ordering::Relaxed) => Ok(None),
            Err(error) => Err(failed(arm, error)),
        }
    }

    fn load(&mut self, path: &Path) -> Result<ComparedRun, ExperimentError> {
        load_compared(path, None)
            .map(timed)
            .map_err(|error| failed(Arm::A, error))
    }
}

/// Adds the time from the command's first thread to the end of its last.
pub fn timed(run: ComparedRun) -> ComparedRun {
    let time = run.duration_ns;
    run.with_wall_time(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_arms_start_the_same_but_for_the_variables() {
        let runner = CommandRunner {
            machine: Machine::host(),
            command: vec!["true".into(), "x".into()],
            env: vec!["A=1".into(), "B=2=3".into()],
            threshold: Nanos(1),
            clock: None,
            label: String::new(),
            runs: PathBuf::new(),
            quiet: true,
        };
        let of = |arm| match runner.started(arm) {
            Followed::Command {
                line,
                env,
                to_stderr,
            } => (line, env, to_stderr),
            other => panic!("{other:?}"),
        };
        let (without, with) = (of(Arm::A), of(Arm::B));
        assert_eq!((&without.0, without.2), (&with.0, with.2));
        assert_eq!(without.0, runner.command);
        assert_eq!(without.1, []);
        assert_eq!(
            with.1,
            [("A".into(), "1".into()), ("B".into(), "2=3".into())]
        );
    }
}
