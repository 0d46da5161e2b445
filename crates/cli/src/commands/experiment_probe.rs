//! The probe of an experiment, from its arguments.

use super::experiment_args::{ExperimentArgs, ProbeArg};
use super::experiment_runners::{ProbeRunner, Recorded};
use super::passive;
use crate::exit::UsageError;
use crate::places::Places;
use jitterscope_model::{
    ClockKind, CpuId, CpuSet, EventGrain, JournalWriting, Nanos, PipelinePacing, PipelineVia,
};
use jitterscope_platform::{CpuChoice, Machine, choose_clock};
use jitterscope_recording::pipeline::{
    InputChoice, PipelineRecordSettings, Place, Places as ThreadPlaces, Schedule, ScheduleChoice,
};
use jitterscope_recording::{
    PassiveRecordSettings, RecordSettings, RunSettings, WakeupChoice, WriterThread,
};
use std::time::Duration;

/// The time between the deadlines of a wake-up probe.
pub(super) const PERIOD: Nanos = Nanos(1_000_000);
/// The warm-up, if a run is longer than that.
const WARM_UP: Nanos = Nanos(500_000_000);
/// The reporting interval of a run.
const INTERVAL: Nanos = Nanos(500_000_000);
/// The trace buffer of a CPU, KiB, and the raw trace that a run keeps, bytes.
const TRACE: (u32, u64) = (8 << 10, 64 << 20);
/// The time between a pipeline's messages, and the slots of its ring, as in `record pipeline`.
const MESSAGES: (Nanos, usize) = (Nanos(10_000), 16_384);

/// The default threshold with `CLOCK_MONOTONIC_RAW`: this clock's own tail, and the time of storing a stall with it,
/// exceed 300 ns on some machines.
const BY_SLOW_CLOCK: Nanos = Nanos(5_000);

/// The threshold: as requested, else constant, because one learnt in a warm-up could differ between arms.
pub(super) fn threshold(args: &ExperimentArgs) -> Nanos {
    let slow = || {
        let clock = choose_clock(
            &Machine::host(),
            args.clock.kind(),
            Duration::from_millis(1),
        );
        clock.is_ok_and(|clock| clock.kind == ClockKind::MonotonicRaw)
    };
    args.threshold.unwrap_or_else(|| match args.probe {
        ProbeArg::Spin if slow() => BY_SLOW_CLOCK,
        ProbeArg::Spin | ProbeArg::None => Nanos(300),
        ProbeArg::Wakeup | ProbeArg::Pipeline => Nanos(50_000),
    })
}

/// Refuses contradictory arguments.
///
/// # Errors
/// No owner is named for `--probe none`, or a pipeline has no placement.
pub(super) fn check(args: &ExperimentArgs, cpus: &CpuSet) -> Result<(), UsageError> {
    let reported = match (args.probe, &args.owner, &args.cpus) {
        (ProbeArg::None, None, _) => {
            "--probe none: name the CPUs' owner with --for, because the thread that has most of a CPU may \
             be another one in the next run"
        }
        (ProbeArg::Spin | ProbeArg::Wakeup | ProbeArg::Pipeline, Some(_), _) => {
            "--for goes with --probe none: a probe is itself the owner of its CPU"
        }
        (ProbeArg::Pipeline, _, None) if !args.knob.is_empty() || args.auto => {
            "--probe pipeline: say with --cpus where its threads run, for knobs are set for those CPUs"
        }
        (ProbeArg::Pipeline, _, Some(_)) if !(2..=3).contains(&cpus.len()) => {
            "--probe pipeline: --cpus names two CPUs, of producer and accumulator, or three, with the journaller's"
        }
        _ => return Ok(()),
    };
    Err(UsageError(reported.into()))
}

/// The settings that all runs of a session must share.
pub(super) fn asked(args: &ExperimentArgs, cpus: &CpuSet) -> String {
    let on = match args.probe {
        ProbeArg::Pipeline if args.cpus.is_none() => "two threads anywhere".to_owned(),
        _ => format!("CPU {cpus}"),
    };
    let of = args
        .owner
        .as_ref()
        .map_or_else(String::new, |owner| format!(" for {owner}"));
    let kind = format!("{:?}", args.probe).to_lowercase();
    format!("{kind} probe on {on}{of}, {}", args.duration)
}

/// The probe runner for the arguments.
///
/// # Errors
/// There is no folder for runs, or no thread has the owner's name.
pub(super) fn probe_runner(
    args: &ExperimentArgs,
    machine: &Machine,
    measured: &CpuChoice,
    places: &Places,
) -> anyhow::Result<ProbeRunner> {
    let threshold = threshold(args);
    let recorded = match args.probe {
        ProbeArg::Spin => Recorded::Probed(probed(args, measured, places, threshold, None)?),
        ProbeArg::Wakeup => {
            let choice = WakeupChoice {
                period: PERIOD,
                hold_latency: false,
                idle_control: None,
            };
            Recorded::Probed(probed(args, measured, places, threshold, Some(choice))?)
        }
        ProbeArg::None => {
            let owner = args.owner.as_deref().unwrap_or_default();
            Recorded::Watched(PassiveRecordSettings {
                run: run_settings(args, places)?,
                cpus: measured.clone(),
                owners: passive::named(owner)?,
                duration: args.duration,
                look: warm_up(args),
                threshold,
                interval: INTERVAL,
                events: EventGrain::All,
            })
        }
        ProbeArg::Pipeline => Recorded::Piped(piped(args, &measured.cpus, places, threshold)?),
    };
    Ok(ProbeRunner {
        machine: machine.clone(),
        recorded,
        measured: measured.cpus.clone(),
        label: args.label.clone(),
        quiet: args.quiet,
    })
}

/// Label and tuning are set for each run.
fn run_settings(args: &ExperimentArgs, places: &Places) -> anyhow::Result<RunSettings> {
    Ok(RunSettings {
        clock: args.clock.kind(),
        trace_buffer_kib: TRACE.0,
        trace_limit_bytes: TRACE.1,
        asked: Vec::new(),
        tuning: None,
        writer: WriterThread::default(),
        label: args.label.clone(),
        runs_dir: places.runs()?,
        command_line: crate::given::given(),
        profile: None,
    })
}

/// At most as long as the run: there are dozens of runs, and each waits for its warm-up.
fn warm_up(args: &ExperimentArgs) -> Nanos {
    WARM_UP.min(args.duration)
}

fn probed(
    args: &ExperimentArgs,
    measured: &CpuChoice,
    places: &Places,
    threshold: Nanos,
    wakeup: Option<WakeupChoice>,
) -> anyhow::Result<RecordSettings> {
    Ok(RecordSettings {
        run: run_settings(args, places)?,
        cpus: measured.clone(),
        wakeup,
        duration: args.duration,
        warmup: warm_up(args),
        threshold: Some(threshold),
        interval: INTERVAL,
        fifo_priority: None,
        events: Some(EventGrain::All),
        graph: Vec::new(),
    })
}

fn piped(
    args: &ExperimentArgs,
    cpus: &CpuSet,
    places: &Places,
    slow_above: Nanos,
) -> anyhow::Result<PipelineRecordSettings> {
    let (interval, ring) = MESSAGES;
    let choice = ScheduleChoice {
        iterations: None,
        warm_up_iterations: None,
        records: None,
        messages: None,
        duration: args.duration,
        warm_up: warm_up(args),
    };
    let Schedule {
        length,
        warm_up_messages,
        records,
    } = choice
        .plan(interval)
        .map_err(|error| UsageError(error.to_string()))?;
    // In numerical order; without a placement if the user named no CPUs.
    let cpus: Vec<CpuId> = cpus.iter().filter(|_| args.cpus.is_some()).collect();
    let place = |at: usize| Place {
        cpu: cpus.get(at).copied(),
        fifo_priority: None,
    };
    Ok(PipelineRecordSettings {
        run: run_settings(args, places)?,
        record_length: 64,
        input: InputChoice::Made {
            folder: places.cache()?,
            records,
        },
        ring,
        interval,
        pacing: PipelinePacing::Schedule,
        length,
        warm_up_messages,
        pause: Nanos(100_000_000),
        // It writes megabytes a second, so it only runs if it has its own CPU.
        journaller: cpus.len() == 3,
        journal: None,
        writing: JournalWriting::Mapped,
        via: PipelineVia::Ring,
        places: ThreadPlaces {
            producer: place(0),
            accumulator: place(1),
            journaller: place(2),
        },
        slow_above: Some(slow_above),
        reporting: INTERVAL,
        trace: true,
        force: false,
    })
}
