//! The common base of every recording.

use super::fan_out::Opened;
use super::output::{Delivered, Output};
use super::outputs::Outputs;
use super::stored_sums::store_sums;
use super::{DRAIN_EVERY, Outcome};
use crate::begun_events::BegunEvents;
use crate::error::RecordError;
use crate::housekeeping::HousekeepingAffinity;
use crate::kernel_events::{EventChoice, EventSettings, EventsEnded, KernelEvents, NoEvents};
use crate::observer::{Observer, Progress};
use crate::settings::RunSettings;
use crate::surroundings::Surroundings;
use crate::{after, before};
use jitterscope_analyze::timer_frequency;
use jitterscope_model::{
    AskedEvent, AskedEventRecords, ClockReading, CpuId, CpuSet, CpuUse, EventPrice, EventsInGaps,
    HostFacts, MachineState, Nanos, NoKernelEvents, ProbeSettings, RUN_SCHEMA_VERSION, RunFacts,
    RunManifest, SelfNoise, Sink, SinkError, SourceReport, StoredTrace, TickRate, Warning,
};
use jitterscope_platform::{self as platform, ClockChoice, Machine, Topology, clock};
use jitterscope_source::in_namespace;
use jitterscope_store::{Room, RunWriter, StoreError, StoreSink};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, Scope};
use std::time::{Duration, Instant};

/// What a target needs, known before anything is created.
pub(crate) struct Plan {
    /// CPUs that our own threads leave.
    pub(crate) leave: CpuSet,
    /// The CPU among `leave` that our threads may use if no other is left.
    pub(crate) shared: Option<CpuId>,
    /// CPUs that no second recording may measure meanwhile.
    pub(crate) claimed: CpuSet,
    /// The measured CPUs, as observers see them.
    pub(crate) measured: CpuSet,
    /// The probe settings in the run; the threshold is zero if it is learned.
    pub(crate) probe: ProbeSettings,
    /// The number of threads of its own that run on the remaining CPUs.
    pub(crate) beside_us: usize,
    /// Kernel events that it will use; their setup begins at once.
    pub(crate) events: Option<EventChoice>,
}

pub(crate) struct Stage<'c, 'o> {
    pub(crate) machine: &'c Machine,
    pub(crate) topology: Topology,
    pub(crate) clock: ClockChoice,
    pub(crate) home: HousekeepingAffinity,
    pub(crate) host: HostFacts,
    pub(crate) outputs: Outputs<'o>,
    /// Limits of the run.
    pub(crate) warnings: Vec<Warning>,
    pub(crate) sources: Vec<SourceReport>,
    /// The cost of recording kernel events.
    pub(crate) price: Option<EventPrice>,
    /// Whether it was ended early.
    pub(crate) interrupted: bool,
    /// How the followed command ended, if it ended by itself.
    pub(crate) command: Option<ExitStatus>,
    pub(crate) observer: &'c mut dyn Observer,
    pub(crate) stop: &'c AtomicBool,
    surroundings: Surroundings,
    begun_events: Option<BegunEvents>,
    pub(crate) probe: ProbeSettings,
    run: RunSettings,
    /// The events that the user asked for, with their records so far.
    asked: Vec<AskedEventRecords>,
    /// Whether a writer thread takes the rows.
    own_writer: bool,
    clocks: ClockReading,
    /// CPU time of our own thread when the measurement began.
    helper_before: Nanos,
    /// CPU time of our own thread when the measurement ended: later work on the last records does not count.
    helper_after: Nanos,
    /// The kernel's timer frequency, once the machine's state is known.
    kernel_hz: Option<u32>,
    /// The machine's state, once the measurement is over.
    state: Option<MachineState>,
    taken_down: TakingDown,
    /// What is known of the current section, and what the sources had lost when it began.
    pub(super) section: Option<RunManifest>,
    pub(super) sections_lost: Vec<SourceReport>,
}

/// A thread that removes tracing instances. Dropping this waits for it.
#[derive(Debug, Default)]
pub struct TakingDown(Option<JoinHandle<Vec<LeftBehind>>>);

/// A tracing instance that could not be removed, and why. The next start removes it, if it can.
pub type LeftBehind = (String, std::io::Error);

impl TakingDown {
    /// Waits for the thread and returns what it could not remove.
    #[must_use]
    pub fn wait(mut self) -> Vec<LeftBehind> {
        self.join()
    }

    fn join(&mut self) -> Vec<LeftBehind> {
        // If it panicked, the next start removes what it left.
        let left = self.0.take().and_then(|thread| thread.join().ok());
        left.unwrap_or_default()
    }
}

impl Drop for TakingDown {
    fn drop(&mut self) {
        self.join();
    }
}

impl<'c, 'o> Stage<'c, 'o> {
    /// Opens the outputs and creates the run directory before anything is measured, so that a full or read-only disk
    /// shows early.
    pub(crate) fn set<'a: 'o>(
        machine: &'c Machine,
        topology: Topology,
        (run, plan): (RunSettings, Plan),
        (clock, home, begun_events): (ClockChoice, HousekeepingAffinity, Option<BegunEvents>),
        outputs: Vec<Output<'a>>,
        (stop, observer): (&'c AtomicBool, &'c mut dyn Observer),
    ) -> Result<Stage<'c, 'o>, RecordError> {
        let Plan {
            leave,
            measured,
            probe,
            beside_us,
            ..
        } = plan;
        let opened = Opened::open(outputs).map_err(RecordError::Output)?;
        let clocks = clock::read_all(clock.kind);
        let mut writer = RunWriter::create(&run.runs_dir, &run.label, clocks.realtime_ns)?;
        writer.limit_trace(run.trace_limit_bytes);
        observer.starting(&measured, &home.helpers);
        let host = platform::host_facts(machine, &topology);
        let surroundings = Surroundings::take(machine, &topology, &host, run.tuning.as_ref());
        let warnings = before::of_clock(&clock).into_iter().collect();
        // A thread on the sibling of a measured CPU disturbs it.
        let beside = leave
            .iter()
            .flat_map(|cpu| Topology::siblings(machine, cpu).iter().collect::<Vec<_>>());
        let free = home.helpers.difference(&beside.collect());
        let own_writer = run.writer.is_own(&free, beside_us);
        Ok(Stage {
            machine,
            topology,
            clock,
            home,
            host,
            outputs: Outputs::new(opened.with(StoreSink::new(writer))),
            warnings,
            sources: Vec::new(),
            price: None,
            interrupted: false,
            command: None,
            observer,
            stop,
            surroundings,
            begun_events,
            probe,
            asked: zero_records(&run.asked),
            run,
            own_writer,
            clocks,
            helper_before: Nanos::ZERO,
            helper_after: Nanos::ZERO,
            kernel_hz: None,
            state: None,
            taken_down: TakingDown::default(),
            section: None,
            sections_lost: Vec::new(),
        })
    }

    /// Drops the recorder while the rest is written: to remove a tracing instance the kernel waits repeatedly for every
    /// CPU.
    fn take_down(&mut self, down: impl FnOnce() -> Vec<LeftBehind> + Send + 'static) {
        // If no thread can be started, the recorder is dropped here.
        let thread = std::thread::Builder::new()
            .name("js-down".into())
            .spawn(down);
        self.taken_down = TakingDown(thread.ok());
    }

    pub(crate) fn rate(&self) -> TickRate {
        self.clock.rate
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Starts recording kernel events, or waits for the setup that was begun earlier. Notes if it removed what an
    /// earlier recorder had left.
    pub(crate) fn kernel_events(&mut self, choice: EventChoice) -> Result<KernelEvents, NoEvents> {
        let begun = self
            .begun_events
            .take()
            .and_then(|begun| begun.wait(self.clock.rate));
        let events = match begun {
            Some(started) => started?,
            None => {
                let settings =
                    EventSettings::of(&self.run, choice, &self.topology, self.clock.kind);
                let mut events = KernelEvents::start(self.machine, &settings)?;
                events.ready(self.clock.rate)?;
                events
            }
        };
        self.warnings.extend(events.leftovers.clone());
        Ok(events)
    }

    /// Notes that no kernel events are recorded: they were not requested, or `why` they are unavailable.
    pub(crate) fn without_events(&mut self, why: Option<&NoEvents>) {
        let circumstance = match why {
            Some(why) => before::blind(self.machine, why, &mut self.sources),
            None => Warning::NoKernelEvents(NoKernelEvents {
                wanted: false,
                problem: None,
            }),
        };
        self.warnings.push(circumstance);
    }

    /// Warns if our own threads have no CPU to themselves.
    pub(crate) fn warn_unless_helped(&mut self, cpus: CpuSet, taken: CpuUse) {
        if self.home.helpers.is_empty() {
            self.warnings.push(Warning::NoFreeCpu { cpus, taken });
        }
    }

    /// Lets time pass before the measurement, and calls `drain` every [`DRAIN_EVERY`]. Returns early when the user
    /// stops it.
    pub(crate) fn pass(
        &mut self,
        time: Nanos,
        mut drain: impl FnMut(&mut Outputs<'o>) -> Result<(), SinkError>,
    ) -> Result<(), SinkError> {
        let until = Instant::now() + Duration::from_nanos(time.0);
        self.pass_until(until, DRAIN_EVERY, |outputs| drain(outputs).map(|()| false))
    }

    /// Like `pass`, but calls `drain` at least every `step` and returns as soon as `drain` returns true.
    pub(crate) fn pass_until(
        &mut self,
        until: Instant,
        step: Duration,
        mut drain: impl FnMut(&mut Outputs<'o>) -> Result<bool, SinkError>,
    ) -> Result<(), SinkError> {
        while !self.stopped() && Instant::now() < until {
            std::thread::sleep(step.min(until.saturating_duration_since(Instant::now())));
            if drain(&mut self.outputs)? {
                break;
            }
        }
        Ok(())
    }

    /// Kernel events have stopped: keeps what a later reader needs, notes the state of the sources and their cost, and
    /// removes the recorder.
    ///
    /// # Errors
    /// Rows were not taken.
    pub(crate) fn events_ended(
        &mut self,
        ended: EventsEnded,
        recorder: impl Send + 'static,
    ) -> Result<(), SinkError> {
        let EventsEnded {
            sources,
            price,
            context,
            renamed_often,
            warnings,
            seen,
            tracefs,
        } = ended;
        self.take_down(move || {
            drop(recorder);
            tracefs.take_left_behind()
        });
        crate::kernel_events::keep_context(&mut self.outputs, &context)?;
        self.sources.extend(sources);
        for asked in &mut self.asked {
            asked.records = seen.get(&asked.event.name()).copied().unwrap_or(0);
        }
        self.price = Some(price);
        self.warnings.extend(after::of_sources(&self.sources));
        if renamed_often > 0 {
            self.warnings.push(Warning::RenamedOften {
                threads: renamed_often,
            });
        }
        self.warnings.extend(warnings);
        Ok(())
    }

    /// Reads the clocks just before the measurement.
    pub(crate) fn begin(&mut self) -> ClockReading {
        self.surroundings.begin(self.machine);
        self.helper_before = self.home.cpu_time();
        self.clocks = clock::read_all(self.clock.kind);
        self.clocks
    }

    /// The next section begins here.
    pub(super) fn next_section(&mut self, clocks: ClockReading) {
        self.clocks = clocks;
    }

    pub(super) fn run(&self) -> &RunSettings {
        &self.run
    }

    /// Stores what is known of the run before its first row.
    pub(crate) fn keep_beginning(&mut self, mut manifest: RunManifest) -> Result<(), SinkError> {
        manifest.warnings.extend(self.warnings.iter().cloned());
        self.section = Some(manifest.clone());
        let takers = self.outputs.takers()?;
        takers.store.beginning(&manifest);
        Ok(())
    }

    /// Moves the takers to a thread of their own if there is a CPU for it.
    pub(crate) fn write_beside<'env>(&mut self, scope: &'o Scope<'o, 'env>) {
        if self.own_writer {
            self.outputs.write_beside(scope);
        }
    }

    /// What is known about the run before its first row.
    pub(crate) fn facts(&self) -> RunFacts {
        RunFacts {
            id: self.outputs.id().to_owned(),
            label: self.run.label.clone(),
            hostname: self.host.hostname.clone(),
            probe: self.probe.kind.clone(),
            cpus: self.probe.cpus.clone(),
            threshold: self.probe.threshold_ns,
            interval: self.probe.interval_ns,
            rate: self.clock.rate,
            clock: self.clocks,
        }
    }

    pub(crate) fn tick(&mut self, progress: Option<&Progress>) -> Result<(), SinkError> {
        self.outputs.tick()?;
        self.tell_failures();
        if let Some(progress) = progress {
            self.observer.progress(progress);
        }
        Ok(())
    }

    fn tell_failures(&mut self) {
        for (name, error) in self.outputs.failures() {
            self.observer.output_failed(&name, &error);
        }
    }

    pub(crate) fn end(&mut self, busy: &CpuSet) -> Result<(), SinkError> {
        self.helper_after = self.home.cpu_time();
        // Before rows may have to wait for their taker.
        let state = self.surroundings.end(self.machine, busy);
        self.outputs.measured()?;
        self.kernel_hz = timer_frequency(&state);
        self.state = Some(state);
        Ok(())
    }

    /// The manifest of a run before anything is measured.
    pub(crate) fn manifest(&self, ended: ClockReading) -> RunManifest {
        RunManifest {
            schema_version: RUN_SCHEMA_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").into(),
            recorder_pid: i32::try_from(std::process::id()).ok(),
            id: self.outputs.id().to_owned(),
            label: self.run.label.clone(),
            command_line: self.run.command_line.clone(),
            host: self.host.clone(),
            clock: self.clock.kind,
            rate: self.clock.rate,
            clock_start: self.clocks,
            clock_end: ended,
            probe: self.probe.clone(),
            results: Vec::new(),
            wakeups: Vec::new(),
            threads: Vec::new(),
            pipeline: None,
            passive: Vec::new(),
            attributed: false,
            asked: self.asked.clone(),
            sources: Vec::new(),
            counters: Vec::new(),
            edge_costs: Vec::new(),
            sleeping_works: Vec::new(),
            senders_dropped: 0,
            events_in_gaps: EventsInGaps::default(),
            self_noise: self.self_noise(),
            trace: StoredTrace::default(),
            interrupted: false,
            killed: false,
            moment: None,
            profile: self.run.profile.clone(),
            imported: None,
            added: None,
            warnings: Vec::new(),
        }
    }

    /// What our own threads cost until the measurement ended.
    fn self_noise(&self) -> SelfNoise {
        SelfNoise {
            helper_cpus: self.home.helpers.clone(),
            helper_cpu_ns: self.helper_after,
            peak_rss_bytes: platform::peak_rss_bytes(),
            ..SelfNoise::default()
        }
    }

    /// Closes everything, the run last, because it states what the other outputs lost. The recorder may still be being
    /// removed.
    pub(crate) fn close<E>(mut self, mut manifest: RunManifest, sums_up: bool) -> Result<Outcome, E>
    where
        E: From<StoreError> + From<SinkError>,
    {
        // All rows are taken before anything else.
        self.outputs.takers()?;
        self.tell_failures();
        let writer = self.outputs.of_writer();
        self.helper_after += writer.map_or(Nanos::ZERO, |of| of.cpu_time);
        self.warnings
            .extend(writer.and_then(|of| crate::warnings::of_writer(of.waited, &self.sources)));
        manifest.self_noise.helper_cpu_ns = self.helper_after;
        let sources = std::mem::take(&mut self.sources).into_iter();
        manifest.sources = sources
            .map(|source| in_namespace(self.machine, source))
            .collect();
        let helper_ns = self.helper_after.saturating_sub(self.helper_before);
        manifest.self_noise.events = self
            .price
            .take()
            .map(|price| EventPrice { helper_ns, ..price });
        manifest.interrupted = self.interrupted;
        manifest.asked = std::mem::take(&mut self.asked);
        let takers = self.outputs.takers()?;
        if let Some(state) = &self.state {
            takers.store.machine(state);
        }
        let outputs = takers.end_beside(&manifest);
        self.warnings
            .extend(crate::warnings::of_room(takers.store.room()));
        if self.interrupted {
            self.warnings.push(Warning::Interrupted);
        }
        self.warnings.extend(outputs.iter().filter_map(lost));
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.append(&mut manifest.warnings);
        manifest.warnings = warnings;
        let sums = takers.sums(&manifest, self.kernel_hz);
        if let Some(sums) = &sums {
            takers.store.summary(sums);
        }
        let has_room = !matches!(takers.store.room(), Room::None { .. });
        // The kernel's own figure; it includes nearly all work after the measurement.
        manifest.self_noise.peak_rss_bytes = platform::peak_rss_bytes();
        let path = takers.store.close(&mut manifest)?;
        // A user who stops the recording does not wait for the rows to be read.
        if sums_up && sums.is_none() && has_room && !self.stopped() {
            // The run is complete. If this fails, each report reads the rows and says what is wrong with them.
            let _ = store_sums(&path, &manifest);
        }
        let (command, taken_down) = (self.command, self.taken_down);
        Ok(Outcome {
            path,
            manifest,
            outputs,
            writer,
            command,
            taken_down,
        })
    }
}

/// The events that the user asked for, before anything is recorded.
fn zero_records(asked: &[AskedEvent]) -> Vec<AskedEventRecords> {
    let each = asked.iter().cloned();
    each.map(|event| AskedEventRecords { event, records: 0 })
        .collect()
}

/// The run's warning about what an output lost.
fn lost(output: &Delivered) -> Option<Warning> {
    let Delivered {
        name,
        delivery,
        error,
    } = output;
    let why = delivery.problem.clone().unwrap_or_default();
    (delivery.lost > 0 || error.is_some()).then(|| Warning::OutputLost {
        output: name.clone(),
        lost: delivery.lost,
        delivered: delivery.delivered,
        why,
    })
}

/// A length that no measurement reaches: 100 years.
pub(crate) const NEVER: Nanos = Nanos(100 * 365 * 86_400 * 1_000_000_000);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::CALIBRATION;
    use crate::error::RecordError;
    use crate::settings::WriterThread;
    use jitterscope_model::{ClockKind, EventGrain};
    use std::sync::Arc;

    struct SlowToGo(Arc<AtomicBool>);

    impl Drop for SlowToGo {
        fn drop(&mut self) {
            std::thread::sleep(std::time::Duration::from_millis(300));
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn our_own_work_after_the_measurement_does_not_count() {
        let runs = tempfile::tempdir().unwrap();
        let machine = Machine::host();
        let clock =
            platform::choose_clock(&machine, Some(ClockKind::MonotonicRaw), CALIBRATION).unwrap();
        let probe = ProbeSettings {
            kind: "attach".into(),
            cpus: CpuSet::new(),
            cpus_chosen_because: None,
            duration_ns: Nanos::ZERO,
            warmup_ns: Nanos::ZERO,
            threshold_ns: Nanos(1),
            clock_costs: None,
            interval_ns: Nanos(1_000_000),
            fifo_priority: None,
            wakeup: None,
            event_grain: EventGrain::All,
        };
        let plan = Plan {
            leave: CpuSet::new(),
            shared: None,
            claimed: CpuSet::new(),
            measured: CpuSet::new(),
            probe,
            beside_us: 0,
            events: None,
        };
        let run = RunSettings {
            clock: Some(ClockKind::MonotonicRaw),
            trace_buffer_kib: 0,
            trace_limit_bytes: 0,
            asked: Vec::new(),
            tuning: None,
            writer: WriterThread::default(),
            label: "test".into(),
            runs_dir: runs.path().to_owned(),
            command_line: Vec::new(),
            profile: None,
        };
        let home = HousekeepingAffinity::leave(&CpuSet::new(), None).unwrap();
        let (stop, topology) = (AtomicBool::new(false), Topology::read(&machine));
        let mut observer = ();
        let mut stage = Stage::set(
            &machine,
            topology,
            (run, plan),
            (clock, home, None),
            Vec::new(),
            (&stop, &mut observer),
        )
        .unwrap();
        stage.price = Some(EventPrice::default());
        let gone = Arc::new(AtomicBool::new(false));
        let ended = stage.begin();
        stage.end(&CpuSet::new()).unwrap();
        let over = stage.home.cpu_time();
        while stage.home.cpu_time() < Nanos(over.0 + 20_000_000) {
            std::hint::black_box(over);
        }
        let manifest = stage.manifest(ended);
        assert!(
            manifest.self_noise.helper_cpu_ns <= over,
            "{:?}",
            manifest.self_noise
        );
        let going = SlowToGo(gone.clone());
        stage.take_down(move || {
            drop(going);
            Vec::new()
        });
        let outcome = stage.close::<RecordError>(manifest, true).unwrap();
        let path = outcome.path.clone();
        drop(outcome);
        assert!(
            gone.load(Ordering::Relaxed),
            "what was set up is gone when nobody holds the outcome any more"
        );
        let noise = jitterscope_store::RunReader::open(&path)
            .unwrap()
            .manifest()
            .self_noise
            .clone();
        assert!(noise.events.unwrap().helper_ns <= over);
    }
}
