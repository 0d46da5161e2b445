//! `record --probe none`: watches what takes CPUs from their owners.

use super::leftovers;
use super::machine_tuning;
use super::measure_args::MeasureArgs;
use super::outputs::{of_recording, tell, told_by_target};
use super::recording_args::kib;
use super::report::{Form, print_run};
use crate::exit::{Exit, UnavailableError, UsageError};
use crate::output;
use crate::places::Places;
use crate::progress::ProgressLine;
use jitterscope_model::{Nanos, ProbeKind};
use jitterscope_platform::{CpuChoice, Machine};
use jitterscope_recording::{
    Owners, PassiveRecordSettings, RecordError, RecordSettings, RunSettings, WriterThread,
    record_passive,
};
use jitterscope_store::StoreError;
use jitterscope_view::record_error;
use std::sync::atomic::AtomicBool;

const THRESHOLD: Nanos = Nanos(300);
/// The default time for finding the owners.
const LOOK: Nanos = Nanos(500_000_000);
const LABEL: &str = "passive";

/// Runs `record --probe none`.
///
/// # Errors
/// There are no kernel events, the CPUs have no owner, or the report cannot be printed.
pub(super) fn run(
    args: &MeasureArgs,
    places: &Places,
    (machine, stop): (&Machine, &AtomicBool),
    (cpus, owners): (CpuChoice, Owners),
) -> anyhow::Result<Exit> {
    let settings = PassiveRecordSettings {
        run: RunSettings {
            clock: args.reading.clock.kind(),
            trace_buffer_kib: kib(args.kept.trace_buffer),
            trace_limit_bytes: args.kept.trace_limit,
            tuning: machine_tuning::of(machine, &cpus.cpus),
            writer: WriterThread::default(),
            label: args.label.clone().unwrap_or_else(|| LABEL.to_owned()),
            runs_dir: places.runs()?,
            command_line: crate::given::given(),
        },
        owners,
        duration: args.duration,
        look: args.warmup.unwrap_or(LOOK),
        threshold: args.reading.threshold.unwrap_or(THRESHOLD),
        interval: args
            .interval
            .unwrap_or_else(|| RecordSettings::default_interval(args.duration)),
        cpus,
        events: args.events.grain(),
    };
    let mut line = ProgressLine::new(args.quiet, ProbeKind::Passive);
    let outcome = record_passive(
        machine,
        &settings,
        of_recording(&args.kept.output),
        stop,
        &mut line,
    );
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

/// The owners; refuses arguments that need a probe.
///
/// # Errors
/// The arguments contradict each other.
pub(super) fn owners(args: &MeasureArgs) -> Result<Owners, UsageError> {
    if args.no_trace {
        let text =
            "--no-trace leaves nothing to record without a probe: only kernel events tell what ran";
        return Err(UsageError(text.into()));
    }
    if args.priority.is_some() {
        return Err(UsageError(
            "--priority is that of a probe, and there is none with --probe none".into(),
        ));
    }
    let Some(owner) = args.owner.as_deref() else {
        if args.warmup == Some(Nanos::ZERO) {
            let text = "--warmup 0 leaves no time to see who has the CPUs; name what belongs there with --for";
            return Err(UsageError(text.into()));
        }
        return Ok(Owners::Largest);
    };
    named(owner)
}

/// The owners of a name or a process id.
///
/// # Errors
/// It is neither.
pub(super) fn named(owner: &str) -> Result<Owners, UsageError> {
    if let Ok(pid) = owner.parse::<i32>() {
        return if pid > 0 {
            Ok(Owners::Process(pid))
        } else {
            Err(UsageError(format!(
                "--for {owner}: there is no such process"
            )))
        };
    }
    if owner.is_empty() {
        return Err(UsageError("--for needs a name or a process id".into()));
    }
    if owner.len() > 15 {
        let cut: String = owner.chars().take(15).collect();
        output::talk(format_args!(
            "the kernel keeps 15 bytes of a thread's name: looking for '{cut}'"
        ));
    }
    Ok(Owners::Named(owner.to_owned()))
}

fn usage_if_asked_wrongly(error: RecordError) -> anyhow::Error {
    match error {
        RecordError::Store(StoreError::Label { .. })
        | RecordError::Follow(_)
        | RecordError::NoOwner { .. } => UsageError(error.to_string()).into(),
        RecordError::Output(error) => told_by_target(error),
        RecordError::NothingToWatch { .. } => UnavailableError(record_error(&error)).into(),
        error if error.is_unavailable_here() => UnavailableError(record_error(&error)).into(),
        other => other.into(),
    }
}
