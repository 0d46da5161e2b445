//! `record none`: watches what takes CPUs from their owners.

use super::outputs::{of_recording, told_by_target};
use super::record::{PassiveArgs, conclude, prepare, settings};
use super::repeat::repeated;
use crate::exit::{Exit, UnavailableError, UsageError};
use crate::output;
use crate::places::Places;
use crate::progress::ProgressLine;
use jitterscope_model::{NamedGroup, Nanos, ProbeKind};
use jitterscope_recording::{
    Owners, PassiveRecordSettings, RecordError, RecordSettings, record_passive,
};
use jitterscope_store::StoreError;
use jitterscope_view::record_error;

pub(super) const THRESHOLD: Nanos = Nanos(300);
/// The default time for finding the owners.
pub(super) const LOOK: Nanos = Nanos(500_000_000);
const LABEL: &str = "passive";

/// Runs `record none`.
///
/// # Errors
/// There are no kernel events, the CPUs have no owner, or the report cannot be printed.
pub(super) fn run(args: &PassiveArgs, places: &Places) -> anyhow::Result<Exit> {
    let owners = owners(args)?;
    let args = &args.all;
    let (machine, stop, cpus) = prepare(args, ProbeKind::Passive, places)?;
    let settings = PassiveRecordSettings {
        run: settings(args, &machine, &cpus.cpus, LABEL, places)?,
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
    repeated(args.repeat, &stop, || {
        let mut line = ProgressLine::new(args.quiet, ProbeKind::Passive);
        let outputs = of_recording(&args.kept.output);
        let outcome = record_passive(&machine, &settings, outputs, &stop, &mut line);
        line.clear();
        conclude(args, outcome.map_err(usage_if_asked_wrongly)?)
    })
}

/// The owners.
///
/// # Errors
/// The arguments contradict each other.
fn owners(args: &PassiveArgs) -> Result<Owners, UsageError> {
    let Some(owner) = args.owner.as_deref() else {
        if args.all.warmup == Some(Nanos::ZERO) {
            let text =
                "--warmup 0 leaves no time to see who has the CPUs; name the owner with --for";
            return Err(UsageError(text.into()));
        }
        return Ok(Owners::Largest);
    };
    named(owner)
}

/// The owners of a name, a process id or control groups.
///
/// # Errors
/// It is none of them.
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
    if let Some(group) = NamedGroup::parse(owner) {
        return Ok(Owners::Group(group));
    }
    if ["unit:", "pod:", "cgroup:"]
        .iter()
        .any(|kind| owner.starts_with(kind))
    {
        return Err(UsageError(format!(
            "--for {owner}: a unit has a name (unit:backup.service), a pod a uid (pod:UID), a control group a path below \
             the topmost (cgroup:/system.slice)"
        )));
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
