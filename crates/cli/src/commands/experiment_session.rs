//! The stored form of an experiment: its settings, its fixed rules, and its session.

use super::experiment_args::ExperimentArgs;
use super::experiment_probe;
use crate::exit::UsageError;
use crate::output;
use jitterscope_analyze::compare::Looks;
use jitterscope_experiment::{Change, ExperimentError, Header, Rules, SESSION_VERSION, Session};
use jitterscope_model::{ClockKind, CpuSet, Nanos, PutInOrder};
use jitterscope_platform::{Machine, boot_id};
use jitterscope_tune::realtime_ns;
use std::path::{Path, PathBuf};

/// The folder of sessions, beside the runs.
pub(super) const SESSIONS: &str = "experiments";

/// The number of void pairs that ends an experiment.
const MOST_VOID: usize = 4;

/// The rules that are fixed in advance.
///
/// # Errors
/// There are too few pairs for a first look.
pub(super) fn rules(args: &ExperimentArgs) -> Result<Rules, UsageError> {
    let looks = Looks::first_after(args.pairs).ok_or_else(|| {
        UsageError(format!(
            "--pairs {}: the first look takes 8 pairs at least",
            args.pairs
        ))
    })?;
    let longest_wait = args.longest_wait.max(Nanos(1));
    Ok(Rules {
        looks,
        margin: args.margin,
        longest_wait,
        most_void: MOST_VOID,
        deadline: None,
    })
}

/// Everything that runs of one experiment must have in common.
pub(super) fn asked(args: &ExperimentArgs, change: &dyn Change, cpus: &CpuSet) -> String {
    let measured = match args.command.as_slice() {
        [] => experiment_probe::asked(args, cpus),
        command => command.join(" "),
    };
    let threshold = args
        .threshold
        .map_or_else(String::new, |threshold| format!(", from {threshold} on"));
    let clock = match args.clock.kind() {
        Some(ClockKind::Tsc) => ", by the TSC",
        Some(ClockKind::MonotonicRaw) => ", by CLOCK_MONOTONIC_RAW",
        None => "",
    };
    let mut what = change.describe();
    let signs = [
        ("applied when", &args.applied_when),
        ("reverted when", &args.reverted_when),
    ];
    for (word, sign) in signs
        .iter()
        .filter_map(|(word, sign)| Some((word, sign.as_ref()?)))
    {
        what += &format!(", {word} {sign}");
    }
    if let Some(time) = args.settles_in {
        what += &format!(", settles in {time}");
    }
    if !args.removes.is_empty() {
        what += &format!(", removes {}", args.removes.join(", "));
    }
    format!(
        "{what}; measured by {measured}{threshold}{clock}; margin {} %; first look at {} pairs",
        args.margin * 100.0,
        args.pairs
    )
}

/// The session of an experiment: a new one, or with `--resume` the last one with the same settings. `made` describes
/// its runs.
pub(super) fn session(
    args: &ExperimentArgs,
    machine: &Machine,
    folder: &Path,
    asked: String,
    made: &dyn Fn(&Session) -> String,
) -> anyhow::Result<Session> {
    if !args.resume {
        return begin(machine, folder, asked);
    }
    let (found, why) = last(machine, folder, &|header| header.asked == asked);
    if let Some(session) = found {
        if !args.quiet {
            output::talk(format_args!("going on after {}", made(&session)));
        }
        return Ok(session);
    }
    let text = format!(
        "--resume: there is no such experiment in {}: {asked}",
        folder.display()
    );
    Err(match why {
        Some(error) => anyhow::Error::from(error).context(text),
        None => UsageError(text).into(),
    })
}

/// The last matching session, and the error of an unreadable one, which is reported only if none matches.
pub(super) fn last(
    machine: &Machine,
    folder: &Path,
    meant: &dyn Fn(&Header) -> bool,
) -> (Option<Session>, Option<ExperimentError>) {
    let mut sessions: Vec<PathBuf> = std::fs::read_dir(folder)
        .map(|all| all.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    sessions.put_in_order();
    let mut why = None;
    for path in sessions.iter().rev() {
        match Session::resume(path, &boot_id(machine)) {
            Ok(session) if meant(&session.header) => return (Some(session), None),
            Ok(_) => {}
            Err(error) => why = Some(error),
        }
    }
    (None, why)
}

pub(super) fn begin(machine: &Machine, folder: &Path, asked: String) -> anyhow::Result<Session> {
    let seed = fastrand::u64(..);
    let now = realtime_ns();
    let header = Header {
        version: SESSION_VERSION,
        asked,
        seed,
        started_realtime_ns: now,
        boot_id: boot_id(machine),
    };
    Ok(Session::begin(
        &folder.join(format!("{now}-{:08x}", seed as u32)),
        header,
    )?)
}
