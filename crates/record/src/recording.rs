//! One recording, step by step.

use crate::counters::CounterWatch;
use crate::drain::Drain;
use crate::error::RecordError;
use crate::evidence::{Evidence, EvidenceSettings};
use crate::home::Home;
use crate::manifest::Common;
use crate::observer::Observer;
use crate::probes::{Job, Joined, Probes};
use crate::settings::{RecordSettings, WakeupChoice};
use crate::sink::Sink;
use crate::surroundings::Surroundings;
use crate::warnings::Circumstance;
use crate::{after, before};
use jitterscope_model::{CpuId, Nanos, ProbeSettings, RunManifest, TickRate, Ticks, WakeupConditions};
use jitterscope_platform::{self as platform, ClockChoice, Machine, ShallowIdle, Topology, clock};
use jitterscope_probe::{SpinSettings, WakeupSettings};
use jitterscope_store::RunWriter;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often the queues and the trace buffers are emptied.
const DRAIN_EVERY: Duration = Duration::from_millis(50);
/// Calibration of the clock, when the machine's statement must be checked.
const CALIBRATION: Duration = Duration::from_millis(50);
/// How often a probe looks whether it should end.
const POLL: Nanos = Nanos(10_000_000);
/// Stalls that fit in a probe's queue, of 16 bytes each: half a second at 65,000 stalls a second.
const QUEUE: usize = 1 << 15;
/// Time between setting the start and the start: every probe must have looked by then.
const START_AHEAD: Nanos = Nanos(30_000_000);

/// What a recording left.
#[derive(Debug)]
pub struct Outcome {
    /// The run directory.
    pub path: PathBuf,
}

/// Records: measures `settings.cpus`, attributes their stalls, writes a run. Ends early, keeping what was
/// measured, when `stop` becomes true. The calling thread is confined to unmeasured CPUs meanwhile.
///
/// # Errors
/// There is no run to show: nothing could be measured, or nothing could be written.
pub fn record(
    machine: &Machine,
    settings: &RecordSettings,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Outcome, RecordError> {
    let stopped = || stop.load(Ordering::Relaxed);
    platform::keep_freed_memory();
    let topology = Topology::read(machine);
    let clock = platform::choose_clock(machine, settings.clock, CALIBRATION)?;
    let (kind, rate) = (clock.kind, clock.rate);
    let threshold = threshold_ticks(settings, &clock)?;
    let home = Home::leave(&settings.cpus.cpus, settings.idle_control())?;
    // A probe that sleeps leaves time for everybody.
    if settings.fifo_priority.is_some() && settings.wakeup.is_none() && home.helpers.is_empty() {
        return Err(RecordError::WouldHang);
    }
    // Made before anything is measured: a full or read-only disk shows now.
    let started = clock::read_all(kind).realtime_ns;
    let mut writer = RunWriter::create(&settings.runs_dir, &settings.label, started)?;
    writer.limit_trace(settings.trace_limit_bytes);
    let sink = Sink::new(writer, probe_kind(settings));
    observer.starting(&settings.cpus.cpus, &home.helpers);

    let host = platform::host_facts(machine, &topology);
    let mut surroundings = Surroundings::take(machine, &topology, &host, settings.tuning.as_ref());
    let mut circumstances = before::circumstances(machine, settings, &clock, &home);
    let mut sources = Vec::new();
    let evidence = if settings.trace {
        let wanted = EvidenceSettings {
            measured: settings.cpus.cpus.clone(),
            online: topology.online.clone(),
            clock: kind,
            rate,
            virtual_machine: host.hypervisor.is_some(),
            helper: home.helpers.first().unwrap_or_default(),
            buffer_kib: settings.trace_buffer_kib,
            wakeups: settings.wakeup.is_some(),
        };
        Evidence::start(machine, &wanted)
            .map_err(|why| circumstances.push(before::blind(why, &mut sources)))
            .ok()
    } else {
        let (reason, fix) = ("--no-trace was given", "Leave it out to have stalls attributed.");
        circumstances.push(Circumstance::NoKernelEvents { reason: reason.into(), fix: fix.into() });
        None
    };
    circumstances.extend(
        evidence
            .as_ref()
            .filter(|e| e.events.leftovers_removed > 0)
            .map(|evidence| Circumstance::LeftoversRemoved { count: evidence.events.leftovers_removed }),
    );

    let _shallow = match settings.wakeup {
        Some(WakeupChoice { hold_latency: true, .. }) => Some(
            ShallowIdle::hold()
                .map_err(|source| RecordError::Machine { what: "/dev/cpu_dma_latency", source })?,
        ),
        _ => None,
    };
    let job = |cpu| job(settings, cpu, threshold, rate);
    let (mut probes, outputs) = Probes::start(kind, settings.cpus.cpus.iter().map(job))?;
    probes.wait_until_ready()?;
    let mut drain = Drain::new(&probes, outputs, evidence, sink, rate)?;
    drain.run_for(DRAIN_EVERY, settings.warmup, stopped);
    if stopped() {
        return Err(RecordError::InterruptedEarly);
    }

    surroundings.begin(machine);
    let clock_start = clock::read_all(kind);
    let start = clock_start.ticks + rate.ticks(START_AHEAD);
    let end = start + rate.ticks(settings.duration);
    drain.begin(clock_start, start, end)?;
    drain.counters =
        Some(CounterWatch::start(machine, &settings.cpus.cpus, Duration::from_nanos(settings.interval.0)));
    probes.measure(start, end);
    let mut interrupted = false;
    while !probes.all_finished() {
        std::thread::sleep(DRAIN_EVERY);
        drain.cycle();
        drain.housekeeping();
        observer.progress(&drain.progress(clock::now(kind), settings.duration));
        if !interrupted && (stopped() || drain.sink.is_stuck()) {
            interrupted = true;
            probes.stop();
        }
    }
    let Joined { results, wakeups } = probes.join()?;
    let clock_end = clock::read_all(kind);
    if results.iter().all(|result| result.samples == 0) {
        return Err(RecordError::InterruptedEarly);
    }
    let state = surroundings.end(machine, &settings.cpus.cpus);
    let mut found = drain.finish(&results);
    found.sink.machine(&state);
    sources.extend(found.sources);
    circumstances.extend(results.iter().flat_map(after::circumstances));
    circumstances.extend(after::of_evidence(&sources, found.attributed));
    circumstances.extend(Circumstance::of_switches(&found.unrecorded_switches));
    circumstances.extend(Circumstance::of_folded(found.folded));
    circumstances.extend(found.sink.of_room());
    if interrupted {
        circumstances.push(Circumstance::Interrupted);
    }
    let common = Common {
        label: &settings.label,
        command_line: &settings.command_line,
        host,
        clock: kind,
        rate,
        clocks: (clock_start, clock_end),
        probe: probe_settings(settings),
        home: &home,
        interrupted,
    };
    let mut manifest = RunManifest {
        results,
        wakeups,
        attributed: found.attributed,
        sources,
        counters: found.counters,
        edge_costs: found.edge_costs,
        sleeping_works: found.sleeping_works,
        events_in_gaps: found.events_in_gaps,
        warnings: circumstances.iter().map(Circumstance::warning).collect(),
        ..common.manifest()
    };
    let costs = found.costs;
    manifest.self_noise.entry_cost_ns = costs.entry_cost_ns;
    manifest.self_noise.exit_cost_ns = costs.exit_cost_ns;
    manifest.self_noise.cost_samples = costs.cost_samples;
    Ok(Outcome { path: found.sink.finish(manifest)? })
}

fn probe_kind(settings: &RecordSettings) -> &'static str {
    if settings.wakeup.is_some() { "wakeup" } else { "spin" }
}

fn job(settings: &RecordSettings, cpu: CpuId, threshold: Ticks, rate: TickRate) -> Job {
    let (interval, fifo_priority) = (rate.ticks(settings.interval), settings.fifo_priority);
    match settings.wakeup {
        Some(choice) => Job::Wakeup(WakeupSettings {
            cpu,
            period: choice.period,
            threshold: settings.threshold,
            interval,
            rate,
            fifo_priority,
            queue: QUEUE,
        }),
        None => Job::Spin(SpinSettings {
            cpu,
            threshold,
            interval,
            poll: rate.ticks(POLL),
            fifo_priority,
            queue: QUEUE,
        }),
    }
}

fn threshold_ticks(settings: &RecordSettings, clock: &ClockChoice) -> Result<Ticks, RecordError> {
    let ticks = clock.rate.ticks(settings.threshold);
    // Only a spinning probe counts what is below it a tick each.
    if settings.wakeup.is_some() || (Ticks(1)..=SpinSettings::MAX_THRESHOLD).contains(&ticks) {
        return Ok(ticks);
    }
    Err(RecordError::Threshold {
        threshold: settings.threshold,
        ticks: ticks.0,
        most: clock.rate.nanos(SpinSettings::MAX_THRESHOLD),
    })
}

fn probe_settings(settings: &RecordSettings) -> ProbeSettings {
    ProbeSettings {
        kind: probe_kind(settings).into(),
        cpus: settings.cpus.cpus.clone(),
        cpus_chosen_because: settings.cpus.because.clone(),
        duration_ns: settings.duration,
        warmup_ns: settings.warmup,
        threshold_ns: settings.threshold,
        interval_ns: settings.interval,
        fifo_priority: settings.fifo_priority,
        wakeup: settings.wakeup.map(|choice| WakeupConditions {
            period_ns: choice.period,
            hold_latency: choice.hold_latency,
            idle_control: choice.idle_control,
        }),
    }
}
