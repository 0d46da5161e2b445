//! Following the threads of others for a while.

use super::follow::Follow;
use super::rows::{EpisodeRows, INTERVAL};
use super::settings::{AttachSettings, Target};
use super::target::{self, Started, TargetError};
use crate::after;
use crate::error::RecordError;
use crate::home::Home;
use crate::kernel_events::{KernelEvents, NoEvents};
use crate::manifest::Common;
use crate::observer::{Observer, Progress};
use crate::recording::Outcome;
use crate::sink::{Rows, Sink};
use crate::surroundings::Surroundings;
use crate::warnings::Circumstance;
use jitterscope_attribute::{FollowerSettings, Following, Start};
use jitterscope_model::{
    ClockReading, Comm, CpuSet, DrainTurn, EventsInGaps, Nanos, ProbeSettings, RunManifest, ThreadRef,
    TickRate, Ticks,
};
use jitterscope_platform::{self as platform, Machine, Topology, clock};
use jitterscope_store::RunWriter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often the trace buffers are emptied.
const DRAIN_EVERY: Duration = Duration::from_millis(50);
/// Calibration of the clock, when the machine's statement must be checked.
const CALIBRATION: Duration = Duration::from_millis(50);
/// Episodes no further apart than this are one stall.
const JOIN_WITHIN: Nanos = Nanos(1_000);
/// Threads followed at most.
const MOST_THREADS: usize = 4096;
/// Without an end of its own, the measurement is taken to end here: a hundred years.
const NEVER: Nanos = Nanos(100 * 365 * 86_400 * 1_000_000_000);

/// Follows threads, attributes their stalls, writes a run. Ends when the threads have ended, the time is
/// over, or `stop` becomes true; what was measured is kept.
///
/// # Errors
/// There is nothing to follow, the kernel's events cannot be had, or nothing can be written.
pub fn attach(
    machine: &Machine,
    settings: &AttachSettings,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Outcome, RecordError> {
    platform::keep_freed_memory();
    let topology = Topology::read(machine);
    let clock = platform::choose_clock(machine, None, CALIBRATION)?;
    let (kind, rate) = (clock.kind, clock.rate);
    let first = target::threads(machine, &settings.target)?;
    if let (Target::Named(name), true, false) = (&settings.target, first.is_empty(), settings.wait) {
        return Err(TargetError::NoSuchName(name.clone()).into());
    }
    let theirs: CpuSet = first.iter().flat_map(|found| found.allowed.iter().collect::<Vec<_>>()).collect();
    // Where they run is only known while they run; where they may not run, we disturb nobody.
    let home = Home::leave(if theirs.is_empty() { &topology.online } else { &theirs }, None)?;
    let started = clock::read_all(kind).realtime_ns;
    let mut writer = RunWriter::create(&settings.runs_dir, &settings.label, started)?;
    writer.limit_trace(settings.trace_limit_bytes);
    let mut sink = Sink::new(writer, "attach");
    observer.starting(&topology.online, &home.helpers);

    let host = platform::host_facts(machine, &topology);
    let mut surroundings = Surroundings::take(machine, &topology, &host, settings.tuning.as_ref());
    let events = KernelEvents::start(
        machine,
        &topology.online,
        &topology.online,
        kind,
        settings.trace_buffer_kib,
        true,
    )
    .map_err(no_events)?;
    let mut circumstances = Vec::new();
    if events.leftovers_removed > 0 {
        circumstances.push(Circumstance::LeftoversRemoved { count: events.leftovers_removed });
    }
    if let Some(reason) = &clock.fallback_reason {
        circumstances.push(Circumstance::ClockFallback { reason: reason.clone() });
    }
    if home.helpers.is_empty() {
        circumstances.push(Circumstance::NoFreeCpuForAttach);
    }
    let mut follow = Follow::new(events, follower_settings(settings, rate));
    surroundings.begin(machine);
    let clock_start = clock::read_all(kind);
    let start = clock_start.ticks;
    let duration = rate.ticks(settings.duration.unwrap_or(NEVER));
    let mut end = start + duration;
    sink.begin(clock_start, rate)?;
    follow.measure(start, end);
    // Again: what began since is followed from here, what ended is gone.
    for found in target::threads(machine, &settings.target)? {
        follow.follow(found.following, None, start);
    }
    let mut command = start_command(&settings.target, &mut follow, start)?;
    // Who waits for a thread wants to follow it for the whole time once it is there.
    let mut awaited = match &settings.target {
        Target::Named(name) if settings.wait && follow.follower().is_idle() => Some(name),
        _ => None,
    };
    if awaited.is_some() {
        end = start + rate.ticks(NEVER);
        follow.measure(start, end);
    }

    let mut rows = EpisodeRows::new(settings.threshold, rate, start);
    let mut interrupted = false;
    let mut now = start;
    while now < end && !interrupted {
        std::thread::sleep(DRAIN_EVERY);
        now = clock::now(kind);
        follow.drain(now, &mut sink);
        if awaited.is_some() && !follow.follower().is_idle() {
            awaited = None;
            end = now + duration;
            follow.measure(start, end);
        }
        rows.take_in(follow.follower_mut(), now.min(end), &mut sink);
        follow.end_turn(&mut sink, DrainTurn { stalls: rows.next_id, ..DrainTurn::default() });
        sink.keep_room();
        match awaited {
            Some(name) => observer.awaiting(name),
            None => observer.progress(&Progress {
                elapsed: rate.nanos(now.since(end - duration)),
                total: settings.duration.unwrap_or(Nanos::ZERO),
                stalls: rows.next_id,
                worst: rows.worst,
            }),
        }
        interrupted = stop.load(Ordering::Relaxed) || sink.is_stuck();
        if is_over(machine, &settings.target, command.as_mut(), &follow) {
            break;
        }
    }
    // Ctrl-C reaches the command, too, and its end may be noticed first.
    interrupted |= stop.load(Ordering::Relaxed);
    let clock_end = clock::read_all(kind);
    let last = clock_end.ticks.min(end);
    // Nobody spins here: every CPU's load tells something.
    let state = surroundings.end(machine, &CpuSet::new());
    sink.machine(&state);
    if let Some(command) = &mut command {
        let by_itself = command.ended();
        command.end();
        circumstances.extend(
            by_itself
                .filter(|status| !status.success() && !interrupted)
                .map(|status| Circumstance::CommandFailed { status: status.to_string() }),
        );
    }
    let threads = follow.finish(last, &mut sink);
    rows.take_in(follow.follower_mut(), last, &mut sink);
    let turn = DrainTurn { stalls: rows.next_id, end: Some(last), ..DrainTurn::default() };
    follow.end_turn(&mut sink, turn);
    rows.close_interval(last, &mut sink);
    let refused = follow.follower().refused();
    if refused > 0 {
        circumstances.push(Circumstance::TooManyThreads { refused, most: MOST_THREADS });
    }
    circumstances.extend(Circumstance::of_switches(&follow.follower().unrecorded_switches()));
    circumstances.extend(Circumstance::of_folded(rate.nanos(follow.follower().folded())));
    if !follow.events.gone.is_empty() {
        circumstances.push(Circumstance::CpusGone { cpus: follow.events.gone.clone() });
    }
    if threads.is_empty() {
        circumstances.push(Circumstance::NobodyMet);
    }
    let mut sources = follow.events.reports();
    sources.retain(|source| source.name != "smi");
    circumstances.extend(after::of_evidence(&sources, true));
    sink.context(&follow.events.context());
    circumstances.extend(sink.of_room());
    if interrupted {
        circumstances.push(Circumstance::Interrupted);
    }
    let events_in_gaps =
        EventsInGaps { events: follow.events_counted(), inside: 0, control_events: 0, control_inside: 0 };
    let probe = ProbeSettings {
        kind: "attach".into(),
        cpus: topology.online.clone(),
        cpus_chosen_because: None,
        duration_ns: settings.duration.unwrap_or_default(),
        warmup_ns: Nanos::ZERO,
        threshold_ns: settings.threshold,
        interval_ns: INTERVAL,
        fifo_priority: None,
        wakeup: None,
    };
    let common = Common {
        label: &settings.label,
        command_line: &settings.command_line,
        host,
        clock: kind,
        rate,
        clocks: (clock_start, ClockReading { ticks: last, ..clock_end }),
        probe,
        home: &home,
        interrupted,
    };
    let manifest = RunManifest {
        threads,
        attributed: true,
        sources,
        events_in_gaps,
        warnings: circumstances.iter().map(Circumstance::warning).collect(),
        ..common.manifest()
    };
    Ok(Outcome { path: sink.finish(manifest)? })
}

fn follower_settings(settings: &AttachSettings, rate: TickRate) -> FollowerSettings {
    FollowerSettings {
        rate,
        join_within: rate.ticks(JOIN_WITHIN),
        remember: Ticks(0),
        new_threads: !matches!(settings.target, Target::Thread(_)),
        children: settings.children,
        names: match &settings.target {
            Target::Named(name) => vec![Comm::new(name)],
            _ => Vec::new(),
        },
        most_threads: MOST_THREADS,
    }
}

fn no_events(why: NoEvents) -> RecordError {
    match why {
        NoEvents::Trace(error) => RecordError::Blind { reason: error.to_string(), fix: error.fix() },
        NoEvents::Context(error) => RecordError::Blind { reason: error.to_string(), fix: String::new() },
    }
}

/// Starts the command, if that is the target. It is followed from before its birth on: its first record
/// is that it is made.
fn start_command(target: &Target, follow: &mut Follow, start: Ticks) -> Result<Option<Started>, RecordError> {
    let Target::Command { line, to_stderr } = target else { return Ok(None) };
    let started = Started::start(line, *to_stderr)?;
    let name = line.first().map(|program| program.rsplit('/').next().unwrap_or(program));
    let thread = ThreadRef { tid: started.pid(), comm: Comm::new(name.unwrap_or_default()) };
    follow.follow(Following { thread, role: None, start: Start::Unknown }, None, start);
    Ok(Some(started))
}

/// Whether there is nobody left to follow.
fn is_over(machine: &Machine, target: &Target, command: Option<&mut Started>, follow: &Follow) -> bool {
    match (target, command) {
        // Processes that it leaves behind are followed until they end.
        (Target::Command { .. }, Some(command)) => command.ended().is_some() && follow.follower().is_idle(),
        (Target::Process(pid), _) => follow.follower().is_idle() && !target::is_alive(machine, *pid),
        (Target::Thread(_), _) => follow.follower().is_idle(),
        // One of the name may begin at any time.
        _ => false,
    }
}
