//! One recording, step by step.

use crate::audit;
use crate::drain::Drain;
use crate::error::RecordError;
use crate::evidence::{Evidence, EvidenceSettings, NoEvents};
use crate::observer::Observer;
use crate::probes::Probes;
use crate::settings::RecordSettings;
use crate::warnings::Circumstance;
use jitterscope_attribute::Edge;
use jitterscope_model::{
    ClockReading, CpuSet, Nanos, ProbeSettings, RunManifest, SCHEMA_VERSION, SelfNoise, SourceReport,
    SourceStatus, Ticks, Warning,
};
use jitterscope_platform::{self as platform, ClockChoice, Machine, Topology, clock};
use jitterscope_probe::SpinSettings;
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
/// Stalls that fit in a probe's queue: a second at 65,000 stalls a second, of 16 bytes each.
const QUEUE: usize = 1 << 16;
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
    let topology = Topology::read(machine);
    let clock = platform::choose_clock(machine, settings.clock, CALIBRATION)?;
    let threshold = threshold_ticks(settings, &clock)?;
    let home = Home::leave(&settings.cpus.cpus)?;
    if settings.fifo_priority.is_some() && home.helpers.is_empty() {
        return Err(RecordError::WouldHang);
    }
    let before = clock::read_all(clock.kind);
    // Made before anything is measured: a full or read-only disk shows now.
    let mut writer = RunWriter::create(&settings.runs_dir, &settings.label, before.realtime_ns)?;
    writer.limit_trace(settings.trace_limit_bytes);
    observer.starting(&settings.cpus.cpus, &home.helpers);

    let mut circumstances = circumstances_before(machine, settings, &clock, &home);
    let host = platform::host_facts(machine, &topology);
    let audit = audit::read(machine);
    let mut sources = Vec::new();
    let evidence =
        start_evidence(machine, settings, &topology, &clock, host.hypervisor.is_some(), &mut sources);
    let evidence = evidence.map_err(|c| circumstances.extend(c)).ok();
    circumstances.extend(evidence.as_ref().and_then(|e| match e.leftovers_removed {
        0 => None,
        count => Some(Circumstance::LeftoversRemoved { count }),
    }));

    let rate = clock.rate;
    let spin = |cpu| SpinSettings {
        cpu,
        threshold,
        interval: rate.ticks(settings.interval),
        poll: rate.ticks(POLL),
        fifo_priority: settings.fifo_priority,
        queue: QUEUE,
    };
    let (mut probes, outputs) = Probes::start(clock.kind, settings.cpus.cpus.iter().map(spin))?;
    probes.wait_until_ready()?;
    let mut drain = Drain::new(machine, outputs, evidence, writer, rate, settings.interval);
    drain.run_for(DRAIN_EVERY, settings.warmup, || stop.load(Ordering::Relaxed));
    if stop.load(Ordering::Relaxed) {
        return Err(RecordError::InterruptedEarly);
    }

    let clock_start = clock::read_all(clock.kind);
    let start = clock_start.ticks + rate.ticks(START_AHEAD);
    let end = start + rate.ticks(settings.duration);
    drain.begin(clock_start, start, end)?;
    probes.measure(start, end);
    let mut interrupted = false;
    while !probes.all_finished() {
        std::thread::sleep(DRAIN_EVERY);
        drain.cycle();
        observer.progress(&drain.progress(clock::now(clock.kind), settings.duration));
        if stop.load(Ordering::Relaxed) && !interrupted {
            interrupted = true;
            probes.stop();
        }
    }
    drain.stop_sources();
    drain.cycle();
    let clock_end = clock::read_all(clock.kind);
    let results = probes.join()?;
    let last = results.iter().map(|r| r.end).max().unwrap_or(end);
    if results.iter().all(|r| r.samples == 0) {
        return Err(RecordError::InterruptedEarly);
    }

    let found = drain.finish(last);
    sources.extend(found.sources);
    for result in &results {
        circumstances.extend(circumstances_after(result));
    }
    circumstances.extend(found.circumstances);
    if interrupted {
        circumstances.push(Circumstance::Interrupted);
    }
    let manifest = RunManifest {
        schema_version: SCHEMA_VERSION,
        tool_version: env!("CARGO_PKG_VERSION").into(),
        id: String::new(),
        label: settings.label.clone(),
        command_line: settings.command_line.clone(),
        host,
        clock: clock.kind,
        rate,
        clock_start,
        clock_end,
        probe: probe_settings(settings),
        results,
        attributed: found.attributed,
        sources,
        counters: found.counters,
        events_in_gaps: found.events_in_gaps,
        audit,
        self_noise: self_noise(&home, &found.costs, &clock),
        trace: Default::default(),
        interrupted,
        warnings: circumstances.iter().map(Circumstance::warning).collect::<Vec<Warning>>(),
    };
    let path = found.writer.finish(manifest)?;
    Ok(Outcome { path })
}
