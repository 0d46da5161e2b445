//! `watch save`, `watch status` and `watch stop`: what another terminal asks of a running watch.

use super::watch_args::{OneArgs, SaveArgs, StatusArgs};
use crate::exit::{Exit, UsageError};
use crate::output;
use anyhow::Context;
use jitterscope_model::SCHEMA_VERSION;
use jitterscope_platform::Machine;
use jitterscope_recording::watch::{Reply, Request, WatchStatus, ask, running};
use jitterscope_view::{silent_watch, watch_status};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A watch answers within a turn of its drain; a run may take longer to write.
const PATIENCE: Duration = Duration::from_secs(10);
const UNTIL_SAVED: Duration = Duration::from_secs(900);

/// Running watches, as JSON.
#[derive(Serialize, JsonSchema)]
pub struct Watches {
    schema_version: u32,
    watches: Vec<WatchStatus>,
    /// Watches whose process does not answer: it is stopped, or busy for long.
    silent: Vec<SilentWatch>,
}

/// A watch that does not answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SilentWatch {
    /// Its first CPU.
    pub first_cpu: Option<u32>,
    pub socket: PathBuf,
    pub why: String,
}

/// Runs `watch save`.
///
/// # Errors
/// No watch runs, or it does not save the moment.
pub fn save(args: &SaveArgs) -> anyhow::Result<Exit> {
    let (socket, status) = the_one(&args.one)?;
    let at_ns = match &args.at {
        None => None,
        Some(at) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
            let now = u64::try_from(now.as_nanos())?;
            let oldest = now.saturating_sub(status.history.reaches_ns);
            let span = at.within(oldest, now).ok_or_else(|| {
                UsageError(format!(
                    "--at {}: the history reaches back {}, not to that time",
                    at.written(),
                    humantime::format_duration(Duration::from_secs(
                        status.history.reaches_ns / 1_000_000_000
                    ))
                ))
            })?;
            // Never later than now.
            Some(
                span.start
                    .saturating_add((span.end - span.start) / 2)
                    .min(now),
            )
        }
    };
    let run = save_at(&socket, at_ns)?;
    output::result(&format!("{}\n", run.display()))?;
    Ok(Exit::Ok)
}

/// Has the watch of this control socket save a moment, nanoseconds since the epoch, or now; waits for the run.
///
/// # Errors
/// It does not answer, or does not save the moment.
pub fn save_at(socket: &Path, at_ns: Option<u64>) -> anyhow::Result<PathBuf> {
    match reply(socket, &Request::Save { at_ns }, UNTIL_SAVED)? {
        Reply::Saved(run) => Ok(run),
        other => Err(refused(other)),
    }
}

/// Runs `watch status`.
///
/// # Errors
/// No watch runs, or it does not answer.
pub fn status(args: &StatusArgs) -> anyhow::Result<Exit> {
    let Found {
        answering: all,
        silent,
    } = all(&args.one)?;
    if args.json {
        let all = Watches {
            schema_version: SCHEMA_VERSION,
            watches: all.into_iter().map(|(_, status)| status).collect(),
            silent,
        };
        output::result(&format!("{}\n", serde_json::to_string_pretty(&all)?))?;
    } else {
        for (_, status) in &all {
            output::result(&watch_status(status, output::style()))?;
        }
        for of in &silent {
            output::result(&silent_watch(of.first_cpu, &of.why, output::style()))?;
        }
    }
    Ok(Exit::Ok)
}

/// Runs `watch stop`.
///
/// # Errors
/// No watch runs, or it does not answer.
pub fn stop(args: &OneArgs) -> anyhow::Result<Exit> {
    let (socket, _) = the_one(args)?;
    match reply(&socket, &Request::Stop, PATIENCE)? {
        Reply::Stopping => Ok(Exit::Ok),
        other => Err(refused(other)),
    }
}

fn refused(reply: Reply) -> anyhow::Error {
    let why = match reply {
        Reply::Refused(why) => why,
        _ => "it gives an answer that this version does not know".into(),
    };
    anyhow::anyhow!("the watch refuses: {why}")
}

fn reply(socket: &Path, request: &Request, patience: Duration) -> anyhow::Result<Reply> {
    let answer = ask(socket, request, patience)
        .with_context(|| format!("{}: no answer", socket.display()))?;
    serde_json::from_str(&answer)
        .context("the watch gives an answer that this version does not know")
}

/// Running watches.
struct Found {
    /// Their sockets and states.
    answering: Vec<(PathBuf, WatchStatus)>,
    silent: Vec<SilentWatch>,
}

/// The running watches that are meant.
fn all(args: &OneArgs) -> anyhow::Result<Found> {
    let sockets = running(&Machine::host())?;
    // They are asked at the same time: each may let us wait.
    let answers: Vec<_> = std::thread::scope(|scope| {
        let ask = |socket: &PathBuf| {
            let socket = socket.clone();
            scope.spawn(move || reply(&socket, &Request::Status, PATIENCE))
        };
        let asked: Vec<_> = sockets.iter().map(ask).collect();
        asked
            .into_iter()
            .map(std::thread::ScopedJoinHandle::join)
            .collect()
    });
    let (mut found, mut silent) = (Vec::new(), Vec::new());
    for (socket, answer) in sockets.into_iter().zip(answers) {
        let why = match answer {
            Ok(Ok(Reply::Status(status))) => {
                found.push((socket, *status));
                continue;
            }
            Ok(Ok(_)) => "it gives an answer that this version does not know".to_owned(),
            Ok(Err(error)) => format!("{error:#}"),
            Err(_) => "the question failed; this is a bug".to_owned(),
        };
        silent.push(SilentWatch {
            first_cpu: first_cpu(&socket),
            socket,
            why,
        });
    }
    if let Some(cpu) = args.cpu {
        let cpu = jitterscope_model::CpuId(cpu);
        found.retain(|(_, status)| status.cpus.contains(cpu));
        silent.retain(|of| of.first_cpu == Some(cpu.0));
    }
    match found.is_empty() && silent.is_empty() {
        true => Err(none(args)),
        false => Ok(Found {
            answering: found,
            silent,
        }),
    }
}

/// The only watch that is meant.
fn the_one(args: &OneArgs) -> anyhow::Result<(PathBuf, WatchStatus)> {
    let Found {
        answering: mut all,
        silent,
    } = all(args)?;
    if all.len() > 1 {
        let cpus: Vec<String> = all.iter().map(|(_, of)| of.cpus.to_string()).collect();
        return Err(UsageError(format!(
            "several watches run (CPUs {}): name one by --cpu",
            cpus.join("; ")
        ))
        .into());
    }
    match (all.pop(), silent.first()) {
        (Some(one), _) => Ok(one),
        (None, Some(silent)) => anyhow::bail!("the watch does not answer: {}", silent.why),
        (None, None) => Err(none(args)),
    }
}

/// That no watch is meant, and how to start one.
fn none(args: &OneArgs) -> anyhow::Error {
    let (on, cpus) = match args.cpu {
        Some(cpu) => (format!(" on CPU {cpu}"), format!(" --cpus {cpu}")),
        None => Default::default(),
    };
    anyhow::anyhow!("no watch runs{on}; start one: jitterscope watch{cpus} --save-if 'max>200us'")
}

/// The first CPU of a watch, by the name of its socket.
fn first_cpu(socket: &Path) -> Option<u32> {
    socket
        .file_name()?
        .to_str()?
        .strip_prefix("cpu")?
        .parse()
        .ok()
}
