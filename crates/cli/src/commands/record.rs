//! `record`: the main command.

use super::asked_events;
use super::leftovers;
use super::machine_threshold;
use super::machine_tuning;
use super::measure_args::{EventsArg, MeasureArgs, ProbedArgs, SleepArgs};
use super::outputs::{beside_a_report, of_recording, tell, told_by_target};
use super::passive;
use super::pipeline::{self, PipelineArgs};
use super::recording_args::kib;
use super::repeat::repeated;
use super::report::{Form, print_run};
use super::require::require;
use crate::exit::{Exit, UnavailableError, UsageError};
use crate::measured;
use crate::places::Places;
use crate::progress::ProgressLine;
use crate::signals;
use anyhow::Context;
use clap::{Args, Subcommand};
use jitterscope_model::{CpuId, CpuSet, Nanos, ProbeKind};
use jitterscope_platform::{CpuChoice, Machine, Topology, current_affinity};
use jitterscope_recording::{
    Extra, Outcome, RecordError, RecordSettings, RunSettings, WakeupChoice, WriterThread,
    idle_control, record,
};
use jitterscope_store::StoreError;
use jitterscope_view::record_error;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The default minimum time that probes run before the measurement.
const WARM_UP: Nanos = Nanos(50_000_000);

/// A probe, with its own arguments.
#[derive(Subcommand, Debug)]
pub enum Probe {
    /// Read the clock back to back: everything that takes a CPU away shows
    Spin(Box<SpinArgs>),
    /// Sleep to deadlines and look how late it wakes, and why
    Wakeup(Box<WakeupArgs>),
    /// Run no probe: watch who takes time from the CPUs' owners
    None(Box<PassiveArgs>),
    /// Measure inter-thread latency: producer, accumulator and journaller over a ring buffer
    Pipeline(Box<PipelineArgs>),
}

/// Arguments of `record spin`.
#[derive(Args, Debug)]
#[command(mut_arg("threshold", |arg| arg.help("The shortest stall [default: 300ns, or what the clock allows if that is more]")))]
pub struct SpinArgs {
    #[command(flatten)]
    probed: ProbedArgs,
}

/// Arguments of `record wakeup`.
#[derive(Args, Debug)]
#[command(
    mut_arg("threshold", |arg| arg.help("The least lateness that is listed one by one [default: 50us]")),
    mut_arg("fail_above", |arg| arg.help("End with code 3 if a wake-up comes later than this"))
)]
pub struct WakeupArgs {
    #[command(flatten)]
    probed: ProbedArgs,
    #[command(flatten)]
    sleep: SleepArgs,
}

/// Arguments of `record none`.
#[derive(Args, Debug)]
#[command(
    mut_arg("warmup", |arg| {
        arg.help("How long to look for the owners before that; this time does not count [default: 500ms]")
    }),
    mut_arg("threshold", |arg| arg.help("The shortest stretch that is listed one by one [default: 300ns]"))
)]
pub struct PassiveArgs {
    #[command(flatten)]
    pub(super) all: MeasureArgs,
    /// The CPUs' owner: a process id, a thread name, unit:NAME of systemd, pod:UID or cgroup:/PATH, which includes threads
    /// that begin later [default: on each CPU the thread that runs most during the warm-up]
    #[arg(long = "for", value_name = "OWNER")]
    pub(super) owner: Option<String>,
}

/// Arguments of `record`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub struct RecordArgs {
    /// The probe [default: spin]
    #[command(subcommand)]
    pub chosen: Option<Probe>,
    #[command(flatten)]
    pub spin: SpinArgs,
}

/// An idle CPU for comparison.
fn control(machine: &Machine, chosen: &CpuSet) -> anyhow::Result<CpuId> {
    let allowed = current_affinity().context("the affinity mask of this process cannot be read")?;
    let control = idle_control(chosen, &Topology::read(machine), &allowed);
    Ok(control.ok_or_else(|| {
        UsageError(format!(
            "--idle-control needs a CPU to compare with, and every usable one is measured ({chosen}); leave one out \
             of --cpus"
        ))
    })?)
}

/// Runs `record`.
///
/// # Errors
/// Nothing could be recorded, or the report cannot be printed.
pub fn run(args: &RecordArgs, places: &Places) -> anyhow::Result<Exit> {
    match &args.chosen {
        None => measure(&args.spin.probed, None, places),
        Some(Probe::Spin(args)) => measure(&args.probed, None, places),
        Some(Probe::Wakeup(args)) => measure(&args.probed, Some(&args.sleep), places),
        Some(Probe::None(args)) => passive::run(args, places),
        Some(Probe::Pipeline(args)) => pipeline::run(args, places),
    }
}

/// Checks the arguments, and returns the machine, the flag that ends a recording, and the chosen CPUs.
pub(super) fn prepare(
    args: &MeasureArgs,
    probe: ProbeKind,
    places: &Places,
) -> anyhow::Result<(Machine, Arc<AtomicBool>, CpuChoice)> {
    beside_a_report(&args.kept.output, args.quiet)?;
    args.gates.of_one_run()?;
    let machine = Machine::host();
    // Before the first examination, which may mount tracefs.
    let stop = signals::stop_flag(places).context("signal handlers cannot be set")?;
    if !args.require.is_empty() {
        require(&machine, &args.require)?;
    }
    asked_events::check(&machine, &args.kept.event)?;
    let cpus = measured::choose(&machine, args.cpus.as_ref(), "--cpus")?;
    measured::tell(&cpus, probe, places, args.quiet)?;
    Ok((machine, stop, cpus))
}

/// The settings that recordings with and without a probe share.
pub(super) fn settings(
    args: &MeasureArgs,
    machine: &Machine,
    cpus: &CpuSet,
    label: &str,
    places: &Places,
) -> anyhow::Result<RunSettings> {
    Ok(RunSettings {
        clock: args.reading.clock.kind(),
        trace_buffer_kib: kib(args.kept.trace_buffer),
        trace_limit_bytes: args.kept.trace_limit,
        asked: args.kept.event.clone(),
        tuning: machine_tuning::of(machine, cpus),
        writer: WriterThread::default(),
        label: args.label.clone().unwrap_or_else(|| label.to_owned()),
        runs_dir: places.runs()?,
        command_line: crate::given::given(),
        profile: args
            .profile
            .as_ref()
            .map(|profile| profile.limit(args.fail_above)),
    })
}

/// Prints the report of a recording, and returns the exit code.
pub(super) fn conclude(args: &MeasureArgs, outcome: Outcome) -> anyhow::Result<Exit> {
    let form = Form::of(args.json, args.full);
    let marked = args.kept.marks.add(&outcome.path, &outcome.manifest);
    let summary = print_run(&outcome.path, outcome.manifest, form)?;
    let delivered = tell(&args.kept.output, &outcome.outputs, args.quiet).and(marked);
    leftovers::tell_left_behind(outcome.taken_down);
    args.gates.hold(args.fail_above, &summary, delivered)
}

fn measure(
    probed: &ProbedArgs,
    sleep: Option<&SleepArgs>,
    places: &Places,
) -> anyhow::Result<Exit> {
    let args = &probed.all;
    if args.events == EventsArg::Coarse && !probed.graph.is_empty() {
        let text = "--graph shows what happens within interrupts and work items, of which --events coarse records \
                    nothing: leave one of the two out";
        return Err(UsageError(text.into()).into());
    }
    let (probe, label) = match sleep {
        None => (ProbeKind::Spin, "spin"),
        Some(_) => (ProbeKind::Wakeup, "wakeup"),
    };
    let (machine, stop, cpus) = prepare(args, probe, places)?;
    let control = match sleep {
        Some(SleepArgs {
            idle_control: true, ..
        }) => Some(control(&machine, &cpus.cpus)?),
        _ => None,
    };
    let cpus = CpuChoice {
        cpus: cpus.cpus.iter().chain(control).collect(),
        because: cpus.because,
    };
    let settings = RecordSettings {
        run: settings(args, &machine, &cpus.cpus, label, places)?,
        cpus,
        wakeup: sleep.map(|sleep| WakeupChoice {
            period: sleep.period,
            hold_latency: sleep.hold_latency,
            idle_control: control,
        }),
        duration: args.duration,
        warmup: args.warmup.unwrap_or(WARM_UP),
        threshold: args.reading.threshold,
        interval: args
            .interval
            .unwrap_or_else(|| RecordSettings::default_interval(args.duration)),
        fifo_priority: probed.priority,
        events: (!probed.no_trace).then(|| args.events.grain()),
        graph: probed.graph.clone(),
    };
    repeated(args.repeat, &stop, || {
        let mut line = ProgressLine::new(args.quiet, probe);
        let known =
            || machine_threshold::of_machine(&settings.run.runs_dir, &machine, settings.run.clock);
        let chooses = sleep.is_none() && settings.threshold.is_none();
        let extra = Extra {
            outputs: of_recording(&args.kept.output),
            shortest: chooses.then(known).flatten().map(|of| of.threshold),
            ..Extra::default()
        };
        let outcome = record(&machine, &settings, extra, &stop, &mut line);
        line.clear();
        conclude(args, outcome.map_err(usage_if_asked_wrongly)?)
    })
}

fn usage_if_asked_wrongly(error: RecordError) -> anyhow::Error {
    match error {
        RecordError::Store(StoreError::Label { .. })
        | RecordError::Threshold { .. }
        | RecordError::WouldHang => UsageError(error.to_string()).into(),
        RecordError::Output(error) => told_by_target(error),
        error if error.is_unavailable_here() => UnavailableError(record_error(&error)).into(),
        other => other.into(),
    }
}
