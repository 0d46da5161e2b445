//! A recording from start to end, whatever it is of.
//!
//! What is measured is a [`Target`]: it says what it needs, sets up its threads and sources, and hands over
//! its rows turn by turn. Everything else is the same for all of them and stands here: the clock is chosen, our
//! own threads leave the measured CPUs, outputs are opened and the run is made before anything is measured, kernel
//! events are started and taken down ([`Stage`]), rows go to all outputs, the end comes when the target has ended,
//! the user says so or nothing can be written any more, and the run is closed with what was measured.

mod batch;
mod load;
mod output;
mod outputs;
mod stage;
mod stored_sums;
mod takers;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use batch::Batch;
pub use output::{Delivered, Output};
pub(crate) use outputs::Outputs;
pub use outputs::WriterUse;
pub use stage::TakingDown;
pub(crate) use stage::{NEVER, Plan, Stage};

use crate::begun_events::BegunEvents;
use crate::error::RecordError;
use crate::home::Home;
use crate::kernel_events::EventSettings;
use crate::observer::{Observer, Progress};
use crate::settings::RunSettings;
use jitterscope_analyze::RowsOf;
use jitterscope_model::{ClockReading, CpuSet, RunManifest, Sink, SinkError};
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
/// Calibration of the clock, when the machine's statement must be checked.
const CALIBRATION: Duration = Duration::from_millis(50);
/// What has ended is noticed within this.
const SHORTEST_TURN: Duration = Duration::from_millis(2);

/// What a recording left.
#[derive(Debug)]
pub struct Outcome {
    /// The run directory.
    pub path: PathBuf,
    /// All that is stored there but the rows and the machine.
    pub manifest: RunManifest,
    /// What became of the rows of each output, in their order.
    pub outputs: Vec<Delivered>,
    /// What the thread took that took the rows; `None` where the one that drained did that, too.
    pub writer: Option<WriterUse>,
    /// How the command ended that was started to be followed; `None` where there was none, and where it was ended
    /// because its time was over or the recording was interrupted.
    pub command: Option<ExitStatus>,
    /// What recorded and is being taken down: the run is whole, and can be reported meanwhile.
    pub taken_down: TakingDown,
}

/// The machine that is recorded on, and who looks on.
pub(crate) struct Context<'c, 'o> {
    pub(crate) machine: &'c Machine,
    pub(crate) outputs: Vec<Output<'o>>,
    pub(crate) stop: &'c AtomicBool,
    pub(crate) observer: &'c mut dyn Observer,
}

/// What can be recorded: a kind of victim, and how its stalls are noticed.
pub(crate) trait Target {
    /// Why it may fail.
    type Error: From<RecordError> + From<StoreError> + From<SinkError>;
    /// Itself, set up.
    type Running: Running<Error = Self::Error>;

    /// What it was asked as any recording is.
    fn settings(&self) -> &RunSettings;

    /// Checks what was asked for, and says what it needs. Nothing is changed on the machine.
    fn plan(&mut self, machine: &Machine, topology: &Topology) -> Result<Plan, Self::Error>;

    /// The clock is chosen and our own threads have left; whether that leaves room for it. The clock's rate is being
    /// checked meanwhile, and stands at the end of this.
    fn check(&mut self, clock: ClockCheck, _home: &Home) -> Result<ClockChoice, Self::Error> {
        Ok(clock.finish().map_err(RecordError::from)?)
    }

    /// Starts sources and threads, and warms up. What limits the recording is noted on the stage.
    fn set_up(self, stage: &mut Stage<'_, '_>) -> Result<Self::Running, Self::Error>;
}

/// A target whose threads and sources run.
pub(crate) trait Running {
    /// Why it may fail.
    type Error: From<RecordError> + From<StoreError> + From<SinkError>;

    /// What is known of its rows before the first of them; `None` where they are summed up from the stored run.
    fn rows_of(&self, _stage: &Stage<'_, '_>) -> Option<RowsOf> {
        None
    }

    /// Time passes before the measurement: the queues are emptied.
    fn idle(&mut self, _outputs: &mut Outputs<'_>) -> Result<(), SinkError> {
        Ok(())
    }

    /// The measurement begins; `clocks` were read just before.
    fn begin(&mut self, stage: &mut Stage<'_, '_>, clocks: ClockReading)
    -> Result<(), Self::Error>;

    /// One turn: everything that is there is handed over. How far it is, unless that was reported otherwise.
    fn turn(&mut self, stage: &mut Stage<'_, '_>) -> Result<Option<Progress>, Self::Error>;

    /// Whether it has ended, by itself or because it was stopped.
    fn is_over(&mut self) -> bool;

    /// Whether it has come to a point from which it cannot go on.
    fn is_stuck(&self) -> bool {
        false
    }

    /// How long it will still measure, where that is known: it is looked at again as soon as that is over.
    fn left(&self, _stage: &Stage<'_, '_>) -> Option<Duration> {
        None
    }

    /// Ends it early; what was measured stays.
    fn stop(&mut self);

    /// It is over: joins its threads.
    ///
    /// # Errors
    /// A thread failed, or nothing was measured.
    fn join(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Whether what memory there is was locked: what is given back would come again without that.
    fn has_locked_memory(&self) -> bool {
        false
    }

    /// CPUs that it kept busy itself, whose load says nothing of the machine. None where nothing of ours spins: then
    /// every CPU's load says something.
    fn busy(&self) -> CpuSet {
        CpuSet::new()
    }

    /// Takes in the rest, and fills in what the run says of itself.
    fn finish(
        self,
        stage: &mut Stage<'_, '_>,
        ended: ClockReading,
    ) -> Result<RunManifest, Self::Error>;
}

/// Records. Ends early, keeping what was measured, when asked to. The calling thread drains, and is confined
/// to CPUs that are not measured meanwhile; where there are enough of them, another one takes the rows.
pub(crate) fn run<T: Target>(mut target: T, context: Context<'_, '_>) -> Result<Outcome, T::Error> {
    let Context {
        machine,
        outputs,
        stop,
        observer,
    } = context;
    platform::keep_freed_memory();
    let topology = Topology::read(machine);
    let settings = target.settings().clone();
    let plan = target.plan(machine, &topology)?;
    let clock =
        ClockCheck::begin(machine, settings.clock, CALIBRATION).map_err(RecordError::from)?;
    let _claim = CpuClaim::take(machine, &plan.claimed).map_err(RecordError::from)?;
    let home = Home::leave(&plan.leave, plan.shared)?;
    // Where it would run on measured CPUs it must not run beside what is measured of the clock there.
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
        measure(target, stage, scope)
    })
}

/// The recording itself, on its stage.
fn measure<'s, T: Target>(
    target: T,
    mut stage: Stage<'_, 's>,
    scope: &'s Scope<'s, '_>,
) -> Result<Outcome, T::Error> {
    let mut running = target.set_up(&mut stage)?;
    // Lists of the kernel's functions were made, and settings of the machine read.
    if !running.has_locked_memory() {
        platform::give_freed_memory_back();
    }
    if stage.stopped() {
        return Err(RecordError::InterruptedEarly.into());
    }
    let clocks = stage.begin();
    let facts = stage.facts();
    stage
        .outputs
        .begin_beside(&facts, |outputs| running.idle(outputs))?;
    if let Some(of) = running.rows_of(&stage) {
        stage.outputs.sum_up(of)?;
    }
    stage.outputs.begin(&facts)?;
    stage.write_beside(scope);
    running.begin(&mut stage, clocks)?;
    stage.observer.measuring(stage.probe.threshold_ns);
    while !running.is_over() {
        let left = running.left(&stage).unwrap_or(DRAIN_EVERY);
        std::thread::sleep(left.clamp(SHORTEST_TURN, DRAIN_EVERY));
        let progress = running.turn(&mut stage)?;
        stage.tick(progress.as_ref())?;
        let stuck = stage.outputs.is_stuck() || running.is_stuck();
        if !stage.interrupted && (stage.stopped() || stuck) {
            stage.interrupted = true;
            running.stop();
        }
    }
    running.join()?;
    let ended = clock::read_all(stage.clock.kind);
    stage.end(&running.busy())?;
    let manifest = running.finish(&mut stage, ended)?;
    // What measured is gone; sums, tables' ends and the report come.
    platform::give_freed_memory_back();
    stage.close(manifest)
}
