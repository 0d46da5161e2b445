//! A recording from start to end, for every kind of target.
//!
//! A [`Target`] says what it needs, sets up its threads and sources, and hands over its rows turn by turn. The engine
//! does everything else. It chooses the clock, moves our own threads off the measured CPUs, opens the outputs and
//! creates the run before anything is measured, starts and removes kernel events ([`Stage`]), and hands rows to all
//! outputs. It ends when the target has ended, the user asks for it, or nothing can be written any more, and then
//! closes the run.

mod batch;
mod fan_out;
mod load;
mod output;
mod outputs;
mod section;
mod stage;
mod stored_sums;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use batch::Batch;
pub(crate) use fan_out::FanOut;
pub use output::{Delivered, Output};
pub(crate) use outputs::Outputs;
pub use outputs::WriterUse;
pub(crate) use section::{Next, SectionEnd, Sections};
pub use stage::{LeftBehind, TakingDown};
pub(crate) use stage::{NEVER, Plan, Stage};

use crate::begun_events::BegunEvents;
use crate::error::RecordError;
use crate::housekeeping::HousekeepingAffinity;
use crate::kernel_events::{EventSettings, KernelEvents};
use crate::observer::{Observer, Progress};
use crate::settings::RunSettings;
use jitterscope_analyze::RowsOf;
use jitterscope_model::{ClockReading, CpuSet, RunManifest, Sink, SinkError, SourceReport, Ticks};
use jitterscope_platform::{
    self as platform, ClockCheck, ClockChoice, CpuClaim, Machine, Topology, clock,
};
use jitterscope_store::StoreError;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::AtomicBool;
use std::thread::Scope;
use std::time::Duration;

/// How often the queues and the trace buffers are emptied.
pub(crate) const DRAIN_EVERY: Duration = Duration::from_millis(50);
/// Calibration time of the clock, used if the rate that the machine states must be checked.
const CALIBRATION: Duration = Duration::from_millis(50);
/// The end of a target is noticed within this time.
const SHORTEST_TURN: Duration = Duration::from_millis(2);

/// The result of a recording.
#[derive(Debug)]
pub struct Outcome {
    pub path: PathBuf,
    /// Everything stored in the run except the rows and the machine.
    pub manifest: RunManifest,
    /// The delivery state of each output, in order.
    pub outputs: Vec<Delivered>,
    /// The use of the writer thread; `None` if the draining thread took the rows.
    pub writer: Option<WriterUse>,
    /// The exit status of the followed command; `None` if there was no command, or if the recorder ended it because the
    /// time was over or the recording was interrupted.
    pub command: Option<ExitStatus>,
    /// The removal of the recorder. The run is complete and can be reported meanwhile.
    pub taken_down: TakingDown,
}

/// The recorded machine and the observer.
pub(crate) struct Context<'c, 'o> {
    pub(crate) machine: &'c Machine,
    pub(crate) outputs: Vec<Output<'o>>,
    pub(crate) stop: &'c AtomicBool,
    pub(crate) observer: &'c mut dyn Observer,
    /// Divides the recording into sections; `None` if it is one run.
    pub(crate) sections: Option<&'c mut dyn Sections>,
}

/// A kind of recording: which threads or CPUs are its victims, and how it finds their stalls.
pub(crate) trait Target {
    /// Why it may fail.
    type Error: From<RecordError> + From<StoreError> + From<SinkError>;
    type Running: Running<Error = Self::Error>;

    /// The settings common to all recordings.
    fn settings(&self) -> &RunSettings;

    /// Validates the settings and says what the target needs. Changes nothing on the machine.
    fn plan(&mut self, machine: &Machine, topology: &Topology) -> Result<Plan, Self::Error>;

    /// Called once the clock is chosen and our own threads have left the measured CPUs. The check of the clock's rate
    /// runs meanwhile and is complete when this returns.
    fn check(
        &mut self,
        clock: ClockCheck,
        _home: &HousekeepingAffinity,
    ) -> Result<ClockChoice, Self::Error> {
        Ok(clock.finish().map_err(RecordError::from)?)
    }

    /// Starts sources and threads, and warms up. Notes limits of the recording on the stage.
    fn set_up(self, stage: &mut Stage<'_, '_>) -> Result<Self::Running, Self::Error>;
}

/// A target whose threads and sources run.
pub(crate) trait Running {
    /// Why it may fail.
    type Error: From<RecordError> + From<StoreError> + From<SinkError>;

    /// What is known about its rows before the first one; `None` if the sums are computed from the stored run.
    fn rows_of(&self, _stage: &Stage<'_, '_>) -> Option<RowsOf> {
        None
    }

    /// Time passes before the measurement: empties the queues.
    fn idle(&mut self, _outputs: &mut Outputs<'_>) -> Result<(), SinkError> {
        Ok(())
    }

    /// Fills in what it knows of the manifest before its first row: the next start finishes the run with it if this
    /// process is killed.
    fn beginning(&self, _manifest: &mut RunManifest) {}

    /// Another section of an endless recording begins at `at`: hands over again, in its next turn, what a reader of the
    /// trace needs, and fills in what attribution has learnt.
    fn next_section(&mut self, _manifest: &mut RunManifest, _at: Ticks) {}

    /// The kernel's records, if it has any.
    fn events(&mut self) -> Option<&mut KernelEvents> {
        None
    }

    /// The sources, with what they lost so far.
    fn sources(&self) -> Vec<SourceReport> {
        Vec::new()
    }

    /// The measurement begins; `clocks` were read just before.
    fn begin(&mut self, stage: &mut Stage<'_, '_>, clocks: ClockReading)
    -> Result<(), Self::Error>;

    /// Runs one turn: hands over everything that has arrived. Returns the progress, unless it was reported otherwise.
    fn turn(&mut self, stage: &mut Stage<'_, '_>) -> Result<Option<Progress>, Self::Error>;

    /// Whether it has ended, by itself or because it was stopped.
    fn is_over(&mut self) -> bool;

    /// Whether it cannot go on.
    fn is_stuck(&self) -> bool {
        false
    }

    /// The remaining time, if known: the engine checks again as soon as it has passed.
    fn left(&self, _stage: &Stage<'_, '_>) -> Option<Duration> {
        None
    }

    /// Ends it early and keeps what was measured.
    fn stop(&mut self);

    /// Joins its threads.
    ///
    /// # Errors
    /// A thread failed, or nothing was measured.
    fn join(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Whether memory was locked. Locked memory that is given back would be faulted in again.
    fn has_locked_memory(&self) -> bool {
        false
    }

    /// CPUs that our own threads kept busy, whose load says nothing about the machine. Empty if no thread of ours
    /// spins.
    fn busy(&self) -> CpuSet {
        CpuSet::new()
    }

    /// Takes in the rest and fills in the manifest.
    fn finish(
        self,
        stage: &mut Stage<'_, '_>,
        ended: ClockReading,
    ) -> Result<RunManifest, Self::Error>;
}

/// Records, and ends early but keeps what was measured if asked to. The calling thread drains and is confined to CPUs
/// that are not measured. If there are enough such CPUs, another thread takes the rows.
pub(crate) fn run<T: Target>(mut target: T, context: Context<'_, '_>) -> Result<Outcome, T::Error> {
    let Context {
        machine,
        outputs,
        stop,
        observer,
        sections,
    } = context;
    platform::keep_freed_memory();
    let topology = Topology::read(machine);
    let settings = target.settings().clone();
    let plan = target.plan(machine, &topology)?;
    let clock =
        ClockCheck::begin(machine, settings.clock, CALIBRATION).map_err(RecordError::from)?;
    let _claim = CpuClaim::take(machine, &plan.claimed).map_err(RecordError::from)?;
    let home = HousekeepingAffinity::leave(&plan.leave, plan.shared)?;
    // If the setup would run on measured CPUs, it must not run during the clock measurement there.
    let early = plan.events.clone().filter(|_| !home.helpers.is_empty());
    let events = early.and_then(|choice| {
        BegunEvents::begin(
            machine,
            &EventSettings::of(&settings, choice, &topology, clock.kind()),
        )
    });
    let clock = target.check(clock, &home)?;
    let set = (clock, home, events);
    std::thread::scope(|scope| {
        let stage = Stage::set(
            machine,
            topology,
            (settings, plan),
            set,
            outputs,
            (stop, observer),
        )?;
        measure(target, stage, scope, sections)
    })
}

/// Runs the recording on its stage.
fn measure<'s, T: Target>(
    target: T,
    mut stage: Stage<'_, 's>,
    scope: &'s Scope<'s, '_>,
    mut sections: Option<&mut dyn Sections>,
) -> Result<Outcome, T::Error> {
    let mut running = target.set_up(&mut stage)?;
    // Reading the list of kernel functions and the machine's settings used much memory.
    if !running.has_locked_memory() {
        platform::give_memory_back();
    }
    if stage.stopped() {
        return Err(RecordError::InterruptedEarly.into());
    }
    let clocks = stage.begin();
    let facts = stage.facts();
    stage
        .outputs
        .begin_beside(&facts, |outputs| running.idle(outputs))?;
    // A section is summed up only if it is saved.
    if let (Some(of), None) = (running.rows_of(&stage), &sections) {
        stage.outputs.sum_up(of)?;
    }
    stage.outputs.begin(&facts)?;
    let mut beginning = stage.manifest(clocks);
    running.beginning(&mut beginning);
    if let Some(sections) = &mut sections {
        sections.begun(&beginning);
        running
            .events()
            .into_iter()
            .for_each(KernelEvents::keep_marks);
    }
    stage.keep_beginning(beginning)?;
    stage.write_beside(scope);
    running.begin(&mut stage, clocks)?;
    stage.observer.measuring(stage.probe.threshold_ns);
    while !running.is_over() {
        let left = running.left(&stage).unwrap_or(DRAIN_EVERY);
        std::thread::sleep(left.clamp(SHORTEST_TURN, DRAIN_EVERY));
        let progress = running.turn(&mut stage)?;
        stage.tick(progress.as_ref())?;
        let stuck = stage.outputs.is_stuck() || running.is_stuck();
        let next = match &mut sections {
            Some(sections) if !stage.interrupted => {
                let marks = running.events().map(KernelEvents::take_marks);
                if sections.wants_sources() {
                    sections.sources(&running.sources());
                }
                sections.turn(clock::now(stage.clock.kind), &marks.unwrap_or_default())
            }
            _ => Next::GoOn,
        };
        if let (Next::Border, Some(sections)) = (next, &mut sections) {
            section::border(&mut running, &mut stage, *sections)?;
        }
        if !stage.interrupted && (stage.stopped() || stuck || next == Next::Stop) {
            stage.interrupted = true;
            running.stop();
        }
    }
    running.join()?;
    let ended = clock::read_all(stage.clock.kind);
    stage.end(&running.busy())?;
    let manifest = running.finish(&mut stage, ended)?;
    // The measuring data is gone; sums, table ends and the report follow.
    platform::give_memory_back();
    let outcome = stage.close::<T::Error>(manifest, sections.is_none())?;
    if let Some(sections) = sections {
        sections.over(outcome.path.clone());
    }
    Ok(outcome)
}
