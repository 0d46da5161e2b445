//! One recording of the pipeline, step by step.

use super::error::PipelineRecordError;
use super::fit::{Room, freedom, misfits, would_starve};
use super::follow::{Blind, Follower};
use super::input;
use super::journal::{JournalKeeper, JournalPlace, check_replaceable};
use super::observer::{PipelineObserver, Step};
use super::remarks::{self, Remark};
use super::result::{Setting, end_of, tagged};
use super::settings::{PipelineLength, PipelineRecordSettings};
use super::slow::SlowDrain;
use super::threads::Threads;
use super::tracing::Tracing;
use crate::error::RecordError;
use crate::home::Home;
use crate::kernel_events::KernelEvents;
use crate::manifest::Common;
use crate::observer::Progress;
use crate::recording::Outcome;
use crate::sink::{Rows, Sink};
use crate::surroundings::Surroundings;
use crate::warnings::Circumstance;
use crate::{after, before};
use jitterscope_clock::MonotonicRaw;
use jitterscope_model::{
    ClockKind, CpuSet, EventsInGaps, Nanos, PipelineResult, ProbeSettings, RunManifest, TickRate, Ticks,
};
use jitterscope_platform::{
    self as platform, CpuLayout, FilePiece, LockedMemory, Machine, Topology, clock, current_affinity,
};
use jitterscope_probe::pipeline::{Length, Pipeline, PipelineControl, PipelineError, PipelineSettings};
use jitterscope_store::RunWriter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often the queues are emptied and the journal's stock is looked at.
const DRAIN_EVERY: Duration = Duration::from_millis(50);
/// Calibration of the clock, when the machine's statement must be checked.
const CALIBRATION: Duration = Duration::from_millis(50);
/// Slow messages that fit in a consumer's queue, of 72 bytes each: 300,000 a second.
const SLOW_QUEUE: usize = 1 << 14;
/// Time between setting the start and the start: the producer looks every millisecond.
const START_AHEAD: Nanos = Nanos(20_000_000);

/// Records: runs the pipeline as set, stores what it measured as a run. Ends early, keeping what was
/// measured, when `stop` becomes true or the journal's disk is full. The calling thread drains the queues
/// and is confined to CPUs that no thread of the pipeline is pinned to meanwhile.
///
/// # Errors
/// There is no run to show: the placement does not fit the machine, a file cannot be had, nothing was
/// measured, or nothing could be written.
pub fn record_pipeline(
    machine: &Machine,
    settings: &PipelineRecordSettings,
    stop: &AtomicBool,
    observer: &mut dyn PipelineObserver,
) -> Result<Outcome, PipelineRecordError> {
    let stopped = || stop.load(Ordering::Relaxed);
    platform::keep_freed_memory();
    let topology = Topology::read(machine);
    let allowed =
        current_affinity().map_err(|source| RecordError::Machine { what: "the affinity mask", source })?;
    let room = Room {
        layout: CpuLayout::read(machine, &topology.online),
        topology: topology.clone(),
        allowed: allowed.clone(),
        quota_millis: platform::cpu_quota_millis(machine),
    };
    let misfits = misfits(&room, &settings.roles(), &settings.places)?;
    if !misfits.is_empty() && !settings.force {
        return Err(PipelineRecordError::Misfit(misfits));
    }
    let real_time = settings.roles().iter().any(|role| settings.places.of(*role).fifo_priority.is_some());
    if real_time && would_starve(&misfits) {
        return Err(PipelineRecordError::WouldHang);
    }
    let mut remarks: Vec<Remark> = misfits.into_iter().map(Remark::Forced).collect();
    let clock = platform::choose_clock(machine, settings.clock, CALIBRATION)?;
    let (kind, rate) = (clock.kind, clock.rate);
    if let Some(path) = &settings.journal {
        check_replaceable(path)?;
    }
    let input = input::open(&settings.input, settings.record_length)?;
    let mut setting = Setting::new(settings, &input);
    setting.forced = !remarks.is_empty();
    remarks.extend(freedom(&room, &settings.roles(), &settings.places).map(Remark::Free));

    let (pinned, measured) = cpus(settings, &allowed);
    let home = Home::leave(&pinned, None)?;
    // CPUs that are left for everything else when every thread has one.
    let floating = settings.roles().iter().filter(|role| settings.places.of(**role).cpu.is_none()).count();
    let all_taken = home.helpers.len() <= floating;
    if real_time && all_taken {
        return Err(PipelineRecordError::WouldHang);
    }
    if all_taken {
        remarks.push(Remark::NoFreeCpu { cpus: measured.clone() });
    }
    // Made before anything is measured: a full or read-only disk shows now.
    let started = clock::read_all(kind).realtime_ns;
    let mut writer = RunWriter::create(&settings.runs_dir, &settings.label, started)?;
    writer.limit_trace(settings.trace_limit_bytes);
    let journal_place = match settings.journal.as_deref() {
        _ if !settings.journaller => None,
        Some(path) => Some(JournalPlace::named(path)),
        None => {
            let (file, name) = writer.make_journal()?;
            Some(JournalPlace::InRun(file, name))
        }
    };
    let sink = Sink::new(writer, "pipeline");
    let host = platform::host_facts(machine, &topology);
    let mut surroundings = Surroundings::take(machine, &topology, &host, settings.tuning.as_ref());
    let mut circumstances: Vec<Circumstance> = clock
        .fallback_reason
        .iter()
        .map(|reason| Circumstance::ClockFallback { reason: reason.clone() })
        .chain(before::throttling(machine).filter(|_| real_time))
        .chain(pinned.iter().filter_map(|cpu| {
            let siblings = Topology::siblings(machine, cpu).difference(&pinned).intersection(&home.helpers);
            (!siblings.is_empty()).then_some(Circumstance::SiblingBusy { cpu, siblings })
        }))
        .collect();
    let mut sources = Vec::new();
    let follower: Box<dyn Follower> = if settings.trace {
        match KernelEvents::start(machine, &measured, &topology.online, kind, settings.trace_buffer_kib, true)
        {
            Ok(events) => {
                if events.leftovers_removed > 0 {
                    circumstances.push(Circumstance::LeftoversRemoved { count: events.leftovers_removed });
                }
                Box::new(Tracing::new(events, kind, rate))
            }
            Err(why) => {
                circumstances.push(before::blind(why, &mut sources));
                Box::new(Blind)
            }
        }
    } else {
        let (reason, fix) = ("--no-trace was given", "Leave it out to learn why messages were slow.");
        circumstances.push(Circumstance::NoKernelEvents { reason: reason.into(), fix: fix.into() });
        Box::new(Blind)
    };

    let mut pipeline = build(kind, rate, settings, input.map)?;
    let journal = match pipeline.journal.take().zip(journal_place) {
        Some((feed, place)) => Some(JournalKeeper::start(place, feed, settings.interval)?),
        None => None,
    };
    observer.step(Step::Starting);
    let mut threads = Threads::start(pipeline.threads, &allowed)?;
    if !threads.wait(PipelineControl::ready, || !stopped())? {
        return Err(RecordError::InterruptedEarly.into());
    }
    let _locked = LockedMemory::lock_resident()
        .map_err(|error| remarks.push(Remark::Unlocked { why: error.to_string() }))
        .ok();
    setting.memory_locked = _locked.is_some();
    let refs = threads.refs();
    let place = |role| settings.places.of(role).cpu;
    let reporting = (rate, settings.reporting);
    let mut drain = SlowDrain::new(machine, pipeline.slow, &refs, place, follower, sink, reporting)
        .map_err(RecordError::from)?;
    drain.follower.threads(&refs);
    observer.step(Step::Threads(&refs));

    let mut lead = Lead { kind, threads, drain, journal };
    if !lead.warm_up(settings.pause, &stopped, observer)? {
        return Err(RecordError::InterruptedEarly.into());
    }

    observer.step(Step::Executing);
    surroundings.begin(machine);
    let clock_start = clock::read_all(kind);
    let start = clock_start.ticks + rate.ticks(START_AHEAD);
    let end = match settings.length {
        PipelineLength::Time(time) => Some(start + rate.ticks(time)),
        PipelineLength::Messages(_) => None,
    };
    lead.drain.sink.begin(clock_start, rate)?;
    lead.drain.begin(start, end);
    lead.threads.control.measure(start, end.unwrap_or(Ticks(u64::MAX)));
    let interrupted = lead.measure((start, rate), planned(settings), &stopped, observer);
    let Lead { threads, drain, journal, .. } = lead;
    let mut joined = threads.join()?;
    let clock_end = clock::read_all(kind);
    if joined.producer.sent == 0 {
        return Err(RecordError::InterruptedEarly.into());
    }
    let last = end_of(&joined);
    let state = surroundings.end(machine, &pinned);
    let (mut sink, followed, unkept) = drain.finish(last);
    sink.machine(&state);
    for (consumer, unkept) in joined.consumers.iter_mut().zip(unkept) {
        consumer.slow_dropped += unkept;
    }
    let attributed = followed.is_some();
    let mut followed_threads = Vec::new();
    let mut events_in_gaps = EventsInGaps::default();
    if let Some(followed) = followed {
        sink.context(&followed.context);
        sources = followed.sources;
        followed_threads = followed.threads;
        events_in_gaps.events = followed.events;
        circumstances.extend(Circumstance::of_switches(&followed.unrecorded_switches));
        circumstances.extend(Circumstance::of_folded(rate.nanos(followed.folded)));
        circumstances.extend(after::of_evidence(&sources, true));
    }
    for (tag, histogram) in tagged(&joined) {
        sink.tagged(&tag, joined.producer.start, last, histogram);
    }
    let account = joined.consumers.iter().find_map(|consumer| consumer.journal);
    let journal = journal.map(|journal| journal.finish(account.unwrap_or_default()));
    let result = setting.result(&joined, journal, rate);
    remarks.extend(remarks::of(&result));
    circumstances.extend(sink.of_room());
    if interrupted {
        circumstances.push(Circumstance::Interrupted);
    }
    let warnings = circumstances.iter().map(Circumstance::warning);
    let common = Common {
        label: &settings.label,
        command_line: &settings.command_line,
        host,
        clock: kind,
        rate,
        clocks: (clock_start, clock_end),
        probe: probe_settings(settings, measured, &result),
        home: &home,
        interrupted,
    };
    let manifest = RunManifest {
        threads: followed_threads,
        attributed,
        sources,
        events_in_gaps,
        warnings: warnings.chain(remarks.iter().map(Remark::warning)).collect(),
        pipeline: Some(result),
        ..common.manifest()
    };
    Ok(Outcome { path: sink.finish(manifest)? })
}

/// What leads the threads through their phases and looks after them meanwhile.
struct Lead {
    kind: ClockKind,
    threads: Threads,
    drain: SlowDrain<Sink>,
    journal: Option<JournalKeeper>,
}

impl Lead {
    /// Warm-up and pause; false when stopped meanwhile.
    fn warm_up(
        &mut self,
        pause: Nanos,
        stopped: &dyn Fn() -> bool,
        observer: &mut dyn PipelineObserver,
    ) -> Result<bool, PipelineRecordError> {
        self.threads.control.warm_up();
        let (drain, journal, kind) = (&mut self.drain, &mut self.journal, self.kind);
        let mut next = Instant::now() + DRAIN_EVERY;
        let warm = self.threads.wait(PipelineControl::warm, || {
            if Instant::now() >= next {
                drain.cycle(clock::now(kind));
                next = Instant::now() + DRAIN_EVERY;
            }
            if let Some(journal) = journal {
                journal.tend();
            }
            !stopped()
        })?;
        if !warm {
            return Ok(false);
        }
        observer.step(Step::WarmUpComplete);
        if pause > Nanos::ZERO {
            observer.step(Step::Pausing(pause));
        }
        let until = Instant::now() + Duration::from_nanos(pause.0);
        while !stopped() && Instant::now() < until {
            std::thread::sleep(DRAIN_EVERY.min(until.saturating_duration_since(Instant::now())));
            drain.cycle(clock::now(kind));
        }
        Ok(!stopped())
    }

    /// Looks after the threads until all have ended; whether that was before their time.
    fn measure(
        &mut self,
        (start, rate): (Ticks, TickRate),
        planned: Nanos,
        stopped: &dyn Fn() -> bool,
        observer: &mut dyn PipelineObserver,
    ) -> bool {
        let mut interrupted = false;
        while !self.threads.all_finished() {
            std::thread::sleep(DRAIN_EVERY);
            let now = clock::now(self.kind);
            self.drain.cycle(now);
            self.drain.sink.keep_room();
            if let Some(journal) = &mut self.journal {
                journal.tend();
                if journal.has_ended() {
                    self.threads.control.close_journal();
                }
            }
            let (stalls, worst) = self.drain.so_far();
            let elapsed = rate.nanos(now.since(start)).min(planned);
            observer.progress(&Progress { elapsed, total: planned, stalls, worst });
            let no_room = self.journal.as_ref().is_some_and(JournalKeeper::is_exhausted);
            if !interrupted && (stopped() || self.drain.sink.is_stuck() || no_room) {
                interrupted = true;
                self.threads.stop();
            }
        }
        interrupted
    }
}

/// CPUs that threads are pinned to, and all that the pipeline runs on.
fn cpus(settings: &PipelineRecordSettings, allowed: &CpuSet) -> (CpuSet, CpuSet) {
    let roles = settings.roles();
    let pinned = settings.pinned();
    let free = roles.iter().any(|role| settings.places.of(*role).cpu.is_none());
    let measured = allowed.iter().filter(|_| free).chain(pinned.iter()).collect();
    (pinned, measured)
}

fn build<I: AsRef<[u8]> + Send + 'static>(
    kind: ClockKind,
    rate: TickRate,
    settings: &PipelineRecordSettings,
    input: I,
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
        producer: places.producer,
        accumulator: places.accumulator,
        journaller_place: places.journaller,
    };
    match kind {
        #[cfg(target_arch = "x86_64")]
        ClockKind::Tsc => Pipeline::new(jitterscope_clock::Tsc, rate, set, input),
        #[cfg(not(target_arch = "x86_64"))]
        ClockKind::Tsc => Pipeline::new(MonotonicRaw, rate, set, input),
        ClockKind::MonotonicRaw => Pipeline::new(MonotonicRaw, rate, set, input),
    }
}

/// How long the schedule is.
fn planned(settings: &PipelineRecordSettings) -> Nanos {
    match settings.length {
        PipelineLength::Time(time) => time,
        PipelineLength::Messages(count) => Nanos(count.saturating_mul(settings.interval.0)),
    }
}

fn probe_settings(settings: &PipelineRecordSettings, cpus: CpuSet, result: &PipelineResult) -> ProbeSettings {
    let slow_above = result.consumers.first().map(|consumer| consumer.slow_above_ns).unwrap_or_default();
    let warm_up = result.setup.warm_up_messages.saturating_mul(settings.interval.0);
    ProbeSettings {
        kind: "pipeline".into(),
        cpus,
        cpus_chosen_because: None,
        duration_ns: planned(settings),
        warmup_ns: Nanos(warm_up),
        threshold_ns: slow_above,
        interval_ns: settings.reporting,
        fifo_priority: settings.places.accumulator.fifo_priority,
        wakeup: None,
    }
}
