//! `record`: the main command.

use super::leftovers;
use super::machine_tuning;
use super::measure_args::{EventsArg, MeasureArgs};
use super::outputs::{beside_a_report, of_recording, tell, told_by_target};
use super::passive;
use super::pipeline::{self, PipelineArgs};
use super::recording_args::kib;
use super::report::{Form, print_run};
use super::require::require;
use crate::exit::{Exit, UnavailableError, UsageError};
use crate::measured;
use crate::places::Places;
use crate::progress::ProgressLine;
use crate::signals;
use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use jitterscope_model::{CpuId, CpuSet, Nanos};
use jitterscope_platform::{CpuChoice, Machine, Topology, current_affinity};
use jitterscope_recording::{
    Extra, RecordError, RecordSettings, RunSettings, WakeupChoice, WriterThread, idle_control,
    record,
};
use jitterscope_store::StoreError;
use jitterscope_view::record_error;

/// The time between the wake-up probe's deadlines, as in cyclictest and jHiccup.
const PERIOD: Nanos = Nanos(1_000_000);
/// The default minimum time that probes run before the measurement.
const WARM_UP: Nanos = Nanos(50_000_000);

/// What to measure with.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum ProbeKind {
    /// Reads the clock back to back
    #[default]
    Spin,
    /// Sleeps to deadlines and looks how late it wakes
    Wakeup,
    /// Runs nothing: watches who takes the CPUs from what belongs there
    None,
}

impl ProbeKind {
    /// The probe kind as in stored runs.
    fn kind(self) -> jitterscope_model::ProbeKind {
        match self {
            ProbeKind::Spin => jitterscope_model::ProbeKind::Spin,
            ProbeKind::Wakeup => jitterscope_model::ProbeKind::Wakeup,
            ProbeKind::None => jitterscope_model::ProbeKind::Passive,
        }
    }
}

/// A probe, with its own arguments.
#[derive(Subcommand, Debug)]
pub enum Probe {
    /// Read the clock back to back: everything that takes a CPU away shows
    Spin(Box<SpinArgs>),
    /// Sleep to deadlines and look how late it wakes, and why
    Wakeup(Box<WakeupArgs>),
    /// No probe at all: watch who takes the CPUs from what belongs there
    None(Box<PassiveArgs>),
    /// Measure inter-thread latency: producer, accumulator and journaller over a ring buffer
    Pipeline(Box<PipelineArgs>),
}

/// Arguments of `record spin`. What does not go with it is refused in words.
#[derive(Args, Debug)]
#[command(
    mut_arg("owner", |arg| arg.hide(true)),
    mut_arg("period", |arg| arg.hide(true)),
    mut_arg("hold_latency", |arg| arg.hide(true)),
    mut_arg("idle_control", |arg| arg.hide(true)),
    mut_arg("threshold", |arg| arg.help("The shortest stall [default: 300ns, or what the clock allows if that is more]"))
)]
pub struct SpinArgs {
    #[command(flatten)]
    all: MeasureArgs,
}

/// Arguments of `record wakeup`.
#[derive(Args, Debug)]
#[command(
    mut_arg("owner", |arg| arg.hide(true)),
    mut_arg("warmup", |arg| arg.help("How long to measure at least before that; what happens then does not count [default: 50ms]")),
    mut_arg("period", |arg| arg.help("Time between deadlines, 50us to 1s [default: 1ms]")),
    mut_arg("hold_latency", |arg| {
        arg.help("Keep the CPUs out of deep idle states (/dev/cpu_dma_latency) while measuring")
    }),
    mut_arg("idle_control", |arg| arg.help("Measure an idle CPU too, to compare with")),
    mut_arg("threshold", |arg| arg.help("The least lateness that is listed one by one [default: 50us]")),
    mut_arg("fail_above", |arg| arg.help("End with code 3 if a wake-up comes later than this"))
)]
pub struct WakeupArgs {
    #[command(flatten)]
    all: MeasureArgs,
}

/// Arguments of `record none`.
#[derive(Args, Debug)]
#[command(
    mut_arg("period", |arg| arg.hide(true)),
    mut_arg("hold_latency", |arg| arg.hide(true)),
    mut_arg("idle_control", |arg| arg.hide(true)),
    mut_arg("priority", |arg| arg.hide(true)),
    mut_arg("no_trace", |arg| arg.hide(true)),
    mut_arg("graph", |arg| arg.hide(true)),
    mut_arg("warmup", |arg| {
        arg.help("How long to look who has the CPUs before that; what happens then does not count [default: 500ms]")
    }),
    mut_arg("owner", |arg| {
        arg.help(
            "What belongs on the CPUs, a process by its number or all threads of a name, also those that begin later \
             [default: on each CPU the thread that has most of it during the warm-up]",
        )
    }),
    mut_arg("threshold", |arg| arg.help("The shortest stretch that is listed one by one [default: 300ns]"))
)]
pub struct PassiveArgs {
    #[command(flatten)]
    all: MeasureArgs,
}

/// Arguments of `record`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub struct RecordArgs {
    /// The probe [default: spin]
    #[command(subcommand)]
    pub chosen: Option<Probe>,
    /// The probe, in place of a subcommand: record --probe none is record none
    #[arg(
        long,
        value_enum,
        value_name = "PROBE",
        default_value = "spin",
        hide_default_value = true
    )]
    pub probe: ProbeKind,
    #[command(flatten)]
    pub all: MeasureArgs,
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

fn default_label(probe: ProbeKind) -> String {
    probe
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Refuses arguments that do not fit the probe or one another.
fn goes_together(args: &MeasureArgs, probe: ProbeKind) -> Result<(), UsageError> {
    let given = [
        ("--period", args.period.is_some()),
        ("--hold-latency", args.hold_latency),
        ("--idle-control", args.idle_control),
    ];
    match (probe, given.iter().find(|(_, given)| *given)) {
        (ProbeKind::Spin, Some((option, _))) => {
            Err(UsageError(format!("{option} goes with 'record wakeup'; the spin probe never sleeps")))
        }
        (ProbeKind::None, Some((option, _))) => Err(UsageError(format!(
            "{option} goes with 'record wakeup'; without a probe nothing of ours sleeps"
        ))),
        (ProbeKind::None, None) if !args.graph.is_empty() => {
            Err(UsageError("--graph goes with a probe: 'record' or 'record wakeup'".into()))
        }
        (ProbeKind::Spin | ProbeKind::Wakeup, None) if args.owner.is_some() => Err(UsageError(
            "--for goes with 'record --probe none': a probe is itself what its CPU belongs to".into(),
        )),
        _ if args.events == EventsArg::Coarse && !args.graph.is_empty() => Err(UsageError(
            "--graph shows what happens within interrupts and work items, of which --events coarse records nothing: \
             leave one of the two out"
                .into(),
        )),
        _ => Ok(()),
    }
}

/// Runs `record`.
///
/// # Errors
/// Nothing could be recorded, or the report cannot be printed.
pub fn run(args: &RecordArgs, places: &Places) -> anyhow::Result<Exit> {
    match &args.chosen {
        None => measure(args.probe, &args.all, places),
        Some(Probe::Spin(args)) => measure(ProbeKind::Spin, &args.all, places),
        Some(Probe::Wakeup(args)) => measure(ProbeKind::Wakeup, &args.all, places),
        Some(Probe::None(args)) => measure(ProbeKind::None, &args.all, places),
        Some(Probe::Pipeline(args)) => pipeline::run(args, places),
    }
}

fn measure(probe: ProbeKind, args: &MeasureArgs, places: &Places) -> anyhow::Result<Exit> {
    goes_together(args, probe)?;
    beside_a_report(&args.kept.output, args.quiet)?;
    args.gates.of_one_run()?;
    let machine = Machine::host();
    // Before the first examination, which may mount tracefs.
    let stop = signals::stop_flag(places).context("signal handlers cannot be set")?;
    if !args.require.is_empty() {
        require(&machine, &args.require)?;
    }
    let cpus = measured::choose(&machine, args.cpus.as_ref(), "--cpus")?;
    let owners = matches!(probe, ProbeKind::None)
        .then(|| passive::owners(args))
        .transpose()?;
    measured::tell(&cpus, probe.kind(), places, args.quiet)?;
    if let Some(owners) = owners {
        return passive::run(args, places, (&machine, &stop), (cpus, owners));
    }
    let control = match args.idle_control {
        true => Some(control(&machine, &cpus.cpus)?),
        false => None,
    };
    let cpus = CpuChoice {
        cpus: cpus.cpus.iter().chain(control).collect(),
        because: cpus.because,
    };
    let wakeup = match probe {
        ProbeKind::Spin | ProbeKind::None => None,
        ProbeKind::Wakeup => Some(WakeupChoice {
            period: args.period.unwrap_or(PERIOD),
            hold_latency: args.hold_latency,
            idle_control: control,
        }),
    };
    let measured = cpus.cpus.clone();
    let settings = RecordSettings {
        run: RunSettings {
            clock: args.reading.clock.kind(),
            trace_buffer_kib: kib(args.kept.trace_buffer),
            trace_limit_bytes: args.kept.trace_limit,
            tuning: machine_tuning::of(&machine, &measured),
            writer: WriterThread::default(),
            label: args.label.clone().unwrap_or_else(|| default_label(probe)),
            runs_dir: places.runs()?,
            command_line: crate::given::given(),
        },
        cpus,
        wakeup,
        duration: args.duration,
        warmup: args.warmup.unwrap_or(WARM_UP),
        threshold: args.reading.threshold,
        interval: args
            .interval
            .unwrap_or_else(|| RecordSettings::default_interval(args.duration)),
        fifo_priority: args.priority,
        events: (!args.no_trace).then(|| args.events.grain()),
        graph: args.graph.clone(),
    };
    let mut line = ProgressLine::new(args.quiet, probe.kind());
    let extra = Extra {
        outputs: of_recording(&args.kept.output),
        ..Extra::default()
    };
    let outcome = record(&machine, &settings, extra, &stop, &mut line);
    line.clear();
    let outcome = outcome.map_err(usage_if_asked_wrongly)?;
    let summary = print_run(
        &outcome.path,
        outcome.manifest,
        Form::of(args.json, args.full),
    )?;
    let delivered = tell(&args.kept.output, &outcome.outputs, args.quiet);
    leftovers::tell_left_behind(outcome.taken_down);
    args.gates.hold(args.fail_above, &summary, delivered)
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
