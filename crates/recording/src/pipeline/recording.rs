use super::error::PipelineRecordError;
use super::fit::{Room, freedom, misfits, would_starve};
use super::follow::{Blind, Follower};
use super::input::{self, Input};
use super::journal::{JournalKeeper, JournalPlace, check_replaceable};
use super::memory;
use super::remarks;
use super::result::{Setting, end_of, tagged};
use super::settings::{PipelineLength, PipelineRecordSettings};
use super::slow::SlowDrain;
use super::threads::{Joined, Threads};
use super::tracing::Tracing;
use crate::before;
use crate::engine::{
    Context, DRAIN_EVERY, Outcome, Output, Outputs, Plan, Running, Stage, Target, run,
};
use crate::error::RecordError;
use crate::housekeeping::HousekeepingAffinity;
use crate::kernel_events::EventChoice;
use crate::observer::{Observer, Progress, Step};
use crate::settings::RunSettings;
use jitterscope_clock::MonotonicRaw;
use jitterscope_model::{
    ClockKind, ClockReading, CpuSet, CpuUse, EventGrain, EventsInGaps, JournalWriting, Nanos,
    PipelineResult, ProbeKind, ProbeSettings, Row, RunManifest, Sink, SinkError, TickRate, Ticks,
    Warning,
};
use jitterscope_platform::{
    self as platform, ClockCheck, ClockChoice, CpuLayout, FilePiece, LockedMemory, Machine,
    MessagePaths, Topology, clock, current_affinity,
};
use jitterscope_probe::pipeline::{
    DATAGRAM_HEAD, Length, Means, Pipeline, PipelineControl, PipelineError, PipelineSettings,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Capacity of a consumer's queue of slow messages, 80 bytes each: 300,000 a second.
const SLOW_QUEUE: usize = 1 << 14;
/// Time between setting the start time and the start: the producer checks every millisecond.
const START_AHEAD: Nanos = Nanos(20_000_000);

/// Runs the pipeline as configured and stores what it measured as a run. Ends early but keeps what was measured when
/// `stop` becomes true or the journal's disk is full. The calling thread drains the queues and is confined to CPUs to
/// which no thread of the pipeline is pinned.
///
/// # Errors
/// There is no run: the placement does not fit the machine, a file is unavailable, nothing was measured, nothing could
/// be written, or an output besides the run cannot be opened or refuses.
pub fn record_pipeline(
    machine: &Machine,
    settings: &PipelineRecordSettings,
    outputs: Vec<Output<'_>>,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Outcome, PipelineRecordError> {
    let (pinned, measured) = (settings.pinned(), CpuSet::new());
    let target = Piping {
        settings,
        room: Room::default(),
        input: None,
        pinned,
        measured,
        real_time: false,
        all_taken: false,
        remarks: Vec::new(),
    };
    run(
        target,
        Context {
            machine,
            outputs,
            stop,
            observer,
            sections: None,
        },
    )
}

struct Piping<'a> {
    settings: &'a PipelineRecordSettings,
    room: Room,
    input: Option<Input>,
    /// CPUs that threads are pinned to, and all CPUs that the pipeline runs on.
    pinned: CpuSet,
    measured: CpuSet,
    real_time: bool,
    /// Whether our own thread has no CPU to itself.
    all_taken: bool,
    remarks: Vec<Warning>,
}

impl<'a> Target for Piping<'a> {
    type Error = PipelineRecordError;
    type Running = Piped<'a>;

    fn settings(&self) -> &RunSettings {
        &self.settings.run
    }

    fn plan(
        &mut self,
        machine: &Machine,
        topology: &Topology,
    ) -> Result<Plan, PipelineRecordError> {
        let settings = self.settings;
        memory::check(machine, settings)?;
        let allowed = current_affinity().map_err(|source| RecordError::Machine {
            what: "the affinity mask",
            source,
        })?;
        self.room = Room {
            layout: CpuLayout::read(machine, &topology.online),
            topology: topology.clone(),
            allowed,
            quota_millis: platform::cpu_quota_millis(machine),
        };
        let misfits = misfits(&self.room, &settings.roles(), &settings.places)?;
        if !misfits.is_empty() && !settings.force {
            return Err(PipelineRecordError::Misfit(misfits));
        }
        self.real_time = settings
            .roles()
            .iter()
            .any(|role| settings.places.of(*role).fifo_priority.is_some());
        if self.real_time && would_starve(&misfits) {
            return Err(PipelineRecordError::WouldHang);
        }
        self.remarks = misfits
            .into_iter()
            .map(|of| Warning::ForcedPlacement { misfit: of.into() })
            .collect();
        if let Some(path) = &settings.journal {
            check_replaceable(path)?;
        }
        self.input = Some(input::open(&settings.input, settings.record_length)?);
        (self.pinned, self.measured) = cpus(settings, &self.room.allowed);
        Ok(Plan {
            leave: self.pinned.clone(),
            claimed: self.pinned.clone(),
            shared: None,
            measured: self.measured.clone(),
            probe: probe_settings(settings, self.measured.clone()),
            beside_us: floating(settings),
            // Events are set up along with the memory, because the request may be refused before that.
            events: None,
        })
    }

    fn check(
        &mut self,
        clock: ClockCheck,
        home: &HousekeepingAffinity,
    ) -> Result<ClockChoice, PipelineRecordError> {
        // CPUs that remain when every thread has one.
        self.all_taken = home.helpers.len() <= floating(self.settings);
        if self.real_time && self.all_taken {
            return Err(PipelineRecordError::WouldHang);
        }
        Ok(clock.finish().map_err(RecordError::from)?)
    }

    fn set_up(self, stage: &mut Stage<'_, '_>) -> Result<Piped<'a>, PipelineRecordError> {
        let Piping {
            settings,
            room,
            input,
            pinned,
            measured,
            real_time,
            all_taken,
            mut remarks,
        } = self;
        let (kind, rate) = (stage.clock.kind, stage.rate());
        let input = match input {
            Some(input) => input,
            None => input::open(&settings.input, settings.record_length)?,
        };
        let mut setting = Setting::new(settings, &input);
        setting.forced = !remarks.is_empty();
        remarks.extend(freedom(&room, &settings.roles(), &settings.places).map(remarks::free));
        if all_taken {
            remarks.push(Warning::NoFreeCpu {
                cpus: measured.clone(),
                taken: CpuUse::Pipeline,
            });
        }
        let journal_place = match settings.journal.as_deref() {
            _ if !settings.journaller => None,
            Some(path) => Some(JournalPlace::named(path)),
            None => {
                let (file, name) = stage.outputs.takers()?.store.make_journal()?;
                Some(JournalPlace::InRun(file, name))
            }
        };
        stage
            .warnings
            .extend(before::throttling(stage.machine).filter(|_| real_time));
        stage.warnings.extend(pinned.iter().filter_map(|cpu| {
            let siblings = Topology::siblings(stage.machine, cpu);
            let siblings = siblings
                .difference(&pinned)
                .intersection(&stage.home.helpers);
            (!siblings.is_empty()).then_some(Warning::SmtSibling { cpu, siblings })
        }));
        let follower = follower(settings, &measured, stage);
        let mut means = Means::default();
        if settings.via.is_in_kernel() {
            let head = DATAGRAM_HEAD;
            let receivers = settings.roles().len() - 1;
            let length = (head + settings.record_length, head);
            let paths = MessagePaths::open(settings.via, receivers, length, settings.ring)?;
            setting.room = paths.room;
            means.paths = Some(paths);
        }
        let mut journal = match journal_place {
            Some(place) => Some(JournalKeeper::open(place, settings.interval)?),
            None => None,
        };
        if let (Some(journal), JournalWriting::PageCache) = (&journal, settings.writing) {
            means.journal = Some(journal.writer()?);
        }
        let mut pipeline = build(kind, rate, settings, input.map, means)?;
        journal = match (pipeline.journal.take(), journal) {
            (Some(feed), Some(journal)) => Some(journal.supplying(feed)?),
            (_, journal) => journal,
        };
        stage.observer.step(Step::Starting);
        let mut threads = Threads::start(pipeline.threads, &room.allowed)?;
        let stop = stage.stop;
        if !threads.wait(PipelineControl::ready, || !stop.load(Ordering::Relaxed))? {
            return Err(RecordError::InterruptedEarly.into());
        }
        let locked = LockedMemory::lock_resident()
            .map_err(|error| {
                remarks.push(Warning::MemoryNotLocked {
                    why: error.to_string(),
                })
            })
            .ok();
        setting.memory_locked = locked.is_some();
        let refs = threads.refs();
        let mut drain = SlowDrain::new(pipeline.slow, &refs, follower, rate);
        drain.follower.threads(&refs);
        stage.observer.step(Step::Threads(&refs));
        let mut piped = Piped {
            settings,
            setting,
            remarks,
            pinned,
            kind,
            start: Ticks(0),
            control: threads.control.clone(),
            threads: Some(threads),
            joined: None,
            drain,
            journal,
            locked,
        };
        piped.warm_up(stage)?;
        Ok(piped)
    }
}

/// The follower, if it is wanted and possible; otherwise the reason is noted.
fn follower(
    settings: &PipelineRecordSettings,
    measured: &CpuSet,
    stage: &mut Stage<'_, '_>,
) -> Box<dyn Follower> {
    if !settings.trace {
        stage.without_events(None);
        return Box::new(Blind);
    }
    match stage.kernel_events(EventChoice {
        measured: measured.clone(),
        follow_threads: true,
        charges_later: true,
        grain: EventGrain::All,
    }) {
        Ok(events) => Box::new(Tracing::new(
            events,
            stage.clock.kind,
            stage.rate(),
            stage.host.hypervisor.is_some(),
            settings.via,
        )),
        Err(why) => {
            stage.without_events(Some(&why));
            Box::new(Blind)
        }
    }
}

/// A running pipeline: leads its threads through their phases and supplies them.
struct Piped<'a> {
    settings: &'a PipelineRecordSettings,
    setting: Setting<'a>,
    remarks: Vec<Warning>,
    pinned: CpuSet,
    kind: ClockKind,
    start: Ticks,
    control: Arc<PipelineControl>,
    /// `None` once they are joined.
    threads: Option<Threads>,
    joined: Option<Joined>,
    drain: SlowDrain,
    journal: Option<JournalKeeper>,
    locked: Option<LockedMemory>,
}

impl Piped<'_> {
    fn warm_up(&mut self, stage: &mut Stage<'_, '_>) -> Result<(), PipelineRecordError> {
        let Some(threads) = &mut self.threads else {
            return Ok(());
        };
        let (stop, pause) = (stage.stop, self.settings.pause);
        let stopped = || stop.load(Ordering::Relaxed);
        self.control.warm_up();
        let (drain, journal) = (&mut self.drain, &mut self.journal);
        let (mut next, mut drained) = (Instant::now() + DRAIN_EVERY, Ok(()));
        let warm = threads.wait(PipelineControl::warm, || {
            if Instant::now() >= next {
                drained = drain.cycle(&mut stage.outputs);
                next = Instant::now() + DRAIN_EVERY;
            }
            if let Some(journal) = journal {
                journal.tend();
            }
            !stopped() && drained.is_ok()
        })?;
        drained?;
        if !warm {
            return Ok(());
        }
        stage.observer.step(Step::WarmUpComplete);
        if pause > Nanos::ZERO {
            stage.observer.step(Step::Pausing(pause));
        }
        stage.pass(pause, |outputs| drain.cycle(outputs))?;
        Ok(())
    }
}

impl Running for Piped<'_> {
    type Error = PipelineRecordError;

    fn has_locked_memory(&self) -> bool {
        self.locked.is_some()
    }

    fn idle(&mut self, outputs: &mut Outputs<'_>) -> Result<(), SinkError> {
        self.drain.cycle(outputs)
    }

    fn begin(
        &mut self,
        stage: &mut Stage<'_, '_>,
        _clocks: ClockReading,
    ) -> Result<(), PipelineRecordError> {
        stage.observer.step(Step::Executing);
        let rate = stage.rate();
        // Counted from now: an output may have waited since the clocks were read.
        self.start = clock::now(self.kind) + rate.ticks(START_AHEAD);
        let end = match self.settings.length {
            PipelineLength::Time(time) => Some(self.start + rate.ticks(time)),
            PipelineLength::Messages(_) => None,
        };
        self.drain.begin(self.start, end);
        self.control
            .measure(self.start, end.unwrap_or(Ticks(u64::MAX)));
        Ok(())
    }

    fn turn(&mut self, stage: &mut Stage<'_, '_>) -> Result<Option<Progress>, PipelineRecordError> {
        let now = clock::now(self.kind);
        self.drain.cycle(&mut stage.outputs)?;
        if let Some(journal) = &mut self.journal {
            journal.tend();
            if journal.has_ended() {
                self.control.close_journal();
            }
        }
        let (stalls, worst) = self.drain.so_far();
        let total = planned(self.settings);
        let elapsed = stage.rate().nanos(now.since(self.start)).min(total);
        Ok(Some(Progress {
            elapsed,
            total,
            stalls,
            worst,
        }))
    }

    fn is_over(&mut self) -> bool {
        self.threads.as_ref().is_none_or(Threads::all_finished)
    }

    fn is_stuck(&self) -> bool {
        self.journal
            .as_ref()
            .is_some_and(JournalKeeper::is_exhausted)
            || self.control.journal_failed()
    }

    fn stop(&mut self) {
        if let Some(threads) = &self.threads {
            threads.stop();
        }
    }

    fn join(&mut self) -> Result<(), PipelineRecordError> {
        if let Some(threads) = self.threads.take() {
            self.joined = Some(threads.join()?);
        }
        match &self.joined {
            Some(joined) if joined.producer.sent > 0 => Ok(()),
            _ => Err(RecordError::InterruptedEarly.into()),
        }
    }

    fn busy(&self) -> CpuSet {
        self.pinned.clone()
    }

    fn finish(
        mut self,
        stage: &mut Stage<'_, '_>,
        ended: ClockReading,
    ) -> Result<RunManifest, PipelineRecordError> {
        let mut joined = self.joined.take().ok_or(RecordError::InterruptedEarly)?;
        let rate = stage.rate();
        let last = end_of(&joined);
        let (followed, unkept) = self.drain.finish(&mut stage.outputs, last)?;
        for (consumer, unkept) in joined.consumers.iter_mut().zip(unkept) {
            consumer.slow_dropped += unkept;
        }
        let mut manifest = stage.manifest(ended);
        manifest.attributed = followed.is_some();
        if let Some(followed) = followed {
            manifest.threads = followed.threads;
            manifest.senders_dropped = followed.senders_dropped;
            manifest.events_in_gaps = EventsInGaps {
                events: followed.events,
                ..EventsInGaps::default()
            };
            let warnings = &mut stage.warnings;
            warnings.extend(crate::warnings::of_switches(&followed.unrecorded_switches));
            warnings.extend(crate::warnings::of_folded(rate.nanos(followed.folded)));
            warnings.extend(followed.throttled.iter().map(crate::warnings::of_throttled));
            stage.events_ended(followed.ended, followed.recorder)?;
        }
        for (tag, histogram) in tagged(&joined) {
            stage
                .outputs
                .rows(&[Row::Whole(&tag, (joined.producer.start, last), histogram)])?;
        }
        let account = joined
            .consumers
            .iter()
            .find_map(|consumer| consumer.journal);
        let journal = self
            .journal
            .map(|journal| journal.finish(account.unwrap_or_default()));
        let result = self.setting.result(&joined, journal, rate);
        self.remarks.extend(remarks::of(&result));
        learnt(&mut manifest.probe, self.settings, &result);
        manifest.warnings = self.remarks.clone();
        manifest.pipeline = Some(result);
        Ok(manifest)
    }
}

fn floating(settings: &PipelineRecordSettings) -> usize {
    settings
        .roles()
        .iter()
        .filter(|role| settings.places.of(**role).cpu.is_none())
        .count()
}

/// CPUs that threads are pinned to, and all CPUs that the pipeline runs on.
fn cpus(settings: &PipelineRecordSettings, allowed: &CpuSet) -> (CpuSet, CpuSet) {
    let roles = settings.roles();
    let pinned = settings.pinned();
    let free = roles
        .iter()
        .any(|role| settings.places.of(*role).cpu.is_none());
    let measured = allowed
        .iter()
        .filter(|_| free)
        .chain(pinned.iter())
        .collect();
    (pinned, measured)
}

fn build<I: AsRef<[u8]> + Send + 'static>(
    kind: ClockKind,
    rate: TickRate,
    settings: &PipelineRecordSettings,
    input: I,
    means: Means,
) -> Result<Pipeline<FilePiece>, PipelineError> {
    let places = settings.places;
    let set = PipelineSettings {
        record_length: settings.record_length,
        warm_up_messages: settings.warm_up_messages,
        length: match settings.length {
            PipelineLength::Messages(count) => Length::Messages(count),
            PipelineLength::Time(_) => Length::UntilEnd,
        },
        interval: rate.ticks(settings.interval),
        pacing: settings.pacing,
        ring: settings.ring,
        journaller: settings.journaller,
        slow_above: settings.slow_above.map(|above| rate.ticks(above)),
        slow_queue: SLOW_QUEUE,
        reporting: rate.ticks(settings.reporting),
        reporting_queue: reporting_queue(settings.reporting),
        producer: places.producer,
        accumulator: places.accumulator,
        journaller_place: places.journaller,
    };
    match kind {
        #[cfg(target_arch = "x86_64")]
        ClockKind::Tsc => Pipeline::with(jitterscope_clock::Tsc, rate, set, input, means),
        #[cfg(not(target_arch = "x86_64"))]
        ClockKind::Tsc => Pipeline::with(MonotonicRaw, rate, set, input, means),
        ClockKind::MonotonicRaw => Pipeline::with(MonotonicRaw, rate, set, input, means),
    }
}

/// Intervals that may wait for the drain, which takes them every [`DRAIN_EVERY`]: twice as many as end in that time,
/// about 270 KiB each.
fn reporting_queue(interval: Nanos) -> usize {
    let between = u64::try_from(DRAIN_EVERY.as_nanos()).unwrap_or(u64::MAX) / interval.0.max(1);
    usize::try_from(between.saturating_mul(2))
        .unwrap_or(usize::MAX)
        .clamp(3, 100)
}

/// Planned length of the schedule.
fn planned(settings: &PipelineRecordSettings) -> Nanos {
    match settings.length {
        PipelineLength::Time(time) => time,
        PipelineLength::Messages(count) => Nanos(count.saturating_mul(settings.interval.0)),
    }
}

fn probe_settings(settings: &PipelineRecordSettings, cpus: CpuSet) -> ProbeSettings {
    ProbeSettings {
        kind: ProbeKind::Pipeline.as_str().into(),
        cpus,
        cpus_chosen_because: None,
        duration_ns: planned(settings),
        warmup_ns: Nanos::ZERO,
        threshold_ns: settings.slow_above.unwrap_or_default(),
        clock_costs: None,
        interval_ns: settings.reporting,
        fifo_priority: settings.places.accumulator.fifo_priority,
        wakeup: None,
        event_grain: EventGrain::All,
    }
}

/// What only the warm-up showed: the limit above which a message is slow, and the length of the warm-up.
fn learnt(probe: &mut ProbeSettings, settings: &PipelineRecordSettings, result: &PipelineResult) {
    probe.threshold_ns = result
        .consumers
        .first()
        .map(|first| first.slow_above_ns)
        .unwrap_or_default();
    probe.warmup_ns = Nanos(
        result
            .setup
            .warm_up_messages
            .saturating_mul(settings.interval.0),
    );
}
