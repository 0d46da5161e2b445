//! `guard`: iterations of a command, and which of them were contaminated.

use super::attach::{THRESHOLD, usage_if_asked_wrongly};
use super::guard_args::GuardArgs;
use super::guard_files::Files;
use super::guard_quiet;
use super::guard_results;
use super::leftovers;
use super::machine_tuning;
use super::recording_args::kib;
use crate::exit::Exit;
use crate::output;
use crate::places::{Places, program};
use crate::progress::ProgressLine;
use crate::signals;
use anyhow::Context;
use jitterscope_analyze::guard::{Contamination, Iteration, Made, Namesakes, QuietWait, Series};
use jitterscope_model::{ProbeKind, RunManifest};
use jitterscope_platform::{Machine, Topology, children_time};
use jitterscope_recording::{AttachSettings, Followed, RunSettings, WriterThread, attach};
use jitterscope_store::RunReader;
use jitterscope_view::guard;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};

/// An iteration that was made.
struct Done {
    iteration: Iteration,
    /// The folder of its run.
    path: PathBuf,
    /// How the command ended, if by itself.
    status: Option<ExitStatus>,
    /// Why the results of the tool within it are not known.
    problem: Option<anyhow::Error>,
}

/// Runs `guard`.
///
/// # Errors
/// A file cannot be written, COMMAND cannot be followed, or the result cannot be printed. What was measured before is
/// kept and printed.
pub fn run(args: &GuardArgs, places: &Places) -> anyhow::Result<Exit> {
    let baseline = args
        .baseline
        .as_ref()
        .map(|path| guard_results::baseline(path, &args.command))
        .transpose()?;
    let files = Files::open(args)?;
    let machine = Machine::host();
    let runs = places.runs()?;
    let stop = signals::stop_flag(places).context("signal handlers cannot be set")?;
    let mut series = Series {
        command: args.command.clone(),
        label: args.label.clone(),
        planned: args.iterations as usize,
        retry: args.retry as usize,
        limit: args.contaminated_above,
        tool: args.results.as_ref().map(|of| of.tool),
        baseline,
        iterations: Vec::new(),
        interrupted: false,
    };
    let (mut last, mut error) = (None, None);
    while let Some(additional) = series.next() {
        if stop.load(Ordering::Relaxed) {
            series.interrupted = true;
            break;
        }
        match iterate(args, &machine, runs.clone(), additional, &stop) {
            Ok(done) => {
                series.interrupted = !done.iteration.is_whole();
                series.iterations.push(done.iteration);
                last = Some((done.path, done.status));
                if let Some(text) = guard::line(&series).filter(|_| !args.quiet) {
                    output::talk(text);
                }
                if done.problem.is_some() {
                    error = done.problem;
                    break;
                }
            }
            // Stopped before there was anything to follow.
            Err(_) if stop.load(Ordering::Relaxed) => {}
            Err(failed) => {
                error = Some(failed);
                break;
            }
        }
    }
    let error = match error {
        Some(error) if series.iterations.is_empty() => return Err(error),
        error => error,
    };
    let path = last.as_ref().map(|(path, _)| path);
    print(
        args,
        &series,
        path.map_or_else(|| "jitterscope".into(), |path| program(path)),
    )?;
    files.write(&series)?;
    if let Some(error) = error {
        return Err(error.context("the series ended early; what was measured is kept"));
    }
    let status = last.and_then(|(_, status)| status);
    Ok(match status.map(Exit::of_command) {
        None | Some(Exit::Ok) => outcome(&series, args.fail),
        Some(failed) => failed,
    })
}

/// The exit code of a series whose command did not fail.
fn outcome(series: &Series, fail: bool) -> Exit {
    match series.outcome() {
        Contamination::Contaminated if fail => Exit::Exceeded,
        Contamination::Unknown if fail => Exit::Unavailable,
        _ => Exit::Ok,
    }
}

/// Starts the command once and follows it to its end.
fn iterate(
    args: &GuardArgs,
    machine: &Machine,
    runs_dir: PathBuf,
    additional: bool,
    stop: &AtomicBool,
) -> anyhow::Result<Done> {
    let wait = wait_for_quiet(args, machine, stop)?;
    let results = args.results.as_ref();
    let results = results
        .map(|of| of.before().map(|before| (of, before)))
        .transpose()?;
    let settings = AttachSettings {
        // It judges what ran instead of the command.
        stacks: false,
        run: RunSettings {
            clock: args.reading.clock.kind(),
            trace_buffer_kib: kib(args.trace_buffer),
            trace_limit_bytes: args.trace_limit,
            asked: Vec::new(),
            tuning: machine_tuning::of(machine, &Topology::read(machine).online),
            writer: WriterThread::default(),
            label: args.label.clone(),
            runs_dir,
            command_line: crate::given::given(),
            profile: None,
        },
        followed: Followed::Command {
            line: args.command.clone(),
            env: Vec::new(),
            // Standard output has the result.
            to_stderr: true,
        },
        wait: false,
        most_threads: None,
        children: true,
        duration: None,
        threshold: args.reading.threshold.unwrap_or(THRESHOLD),
    };
    let before = children_time();
    let mut progress = ProgressLine::new(args.quiet, ProbeKind::Attach);
    let made = attach(machine, &settings, Vec::new(), stop, &mut progress);
    progress.clear();
    let outcome = made.map_err(usage_if_asked_wrongly)?;
    let used = children_time().since(before);
    let made = Made {
        additional,
        exit_code: outcome.command.map(exit_code),
        user: used.user,
        system: used.system,
        wait,
    };
    let manifest = &outcome.manifest;
    let iteration = Iteration::of(manifest, made, args.contaminated_above);
    let mut iteration = match iteration.is_unclear() {
        true => iteration.with_stalls(
            manifest,
            namesakes(&outcome.path, manifest)?,
            args.contaminated_above,
        ),
        false => iteration,
    };
    let problem = match results.map(|(of, before)| of.since(&before)) {
        None => None,
        Some(Ok(found)) => {
            iteration.benchmarks = found;
            None
        }
        // A command that failed or was ended may have written nothing; its exit code tells enough.
        Some(Err(_)) if made.exit_code != Some(0) => None,
        Some(Err(problem)) => Some(problem),
    };
    leftovers::tell_left_behind(outcome.taken_down);
    Ok(Done {
        iteration,
        path: outcome.path,
        status: outcome.command,
        problem,
    })
}

/// Waits for quiet, if the user asked for it.
///
/// # Errors
/// The kernel does not tell whether it is quiet, or the wait was stopped.
fn wait_for_quiet(
    args: &GuardArgs,
    machine: &Machine,
    stop: &AtomicBool,
) -> anyhow::Result<Option<QuietWait>> {
    let Some(limit) = args.wait_quiet else {
        return Ok(None);
    };
    let busy = |look: &QuietWait| {
        if !args.quiet {
            output::talk(guard::waiting(look, limit));
        }
    };
    let waited = guard_quiet::wait(machine, limit, stop, busy)?;
    waited.map(Some).context("the wait for quiet was stopped")
}

/// What the stalls of a run show of threads that have the name of one of the command's own.
fn namesakes<'m>(path: &Path, manifest: &'m RunManifest) -> anyhow::Result<Namesakes<'m>> {
    let mut found = Namesakes::new(manifest);
    let run = RunReader::with_manifest(path, manifest.clone())?;
    for stall in run.attributions()? {
        found.add(&stall?);
    }
    Ok(found)
}

/// The exit code of a command, as `guard` passes it on.
fn exit_code(status: ExitStatus) -> u8 {
    match Exit::of_command(status) {
        Exit::Ok => 0,
        Exit::Command(code) => code,
        _ => 1,
    }
}

fn print(args: &GuardArgs, series: &Series, program: String) -> anyhow::Result<()> {
    if args.json {
        return output::json(&guard::json(series));
    }
    output::result(&guard::text(series, &program, args.full, output::style()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn a_series_ends_with_a_code_only_if_it_was_asked_to() {
        // Nothing was measured: nothing shows that it was clean.
        let series = Series {
            command: vec!["true".into()],
            label: "guard".into(),
            planned: 1,
            retry: 0,
            limit: 0.01,
            tool: None,
            baseline: None,
            iterations: Vec::new(),
            interrupted: true,
        };
        assert_eq!(outcome(&series, false), Exit::Ok);
        assert_eq!(outcome(&series, true), Exit::Unavailable);
    }

    #[test]
    fn exit_codes_are_those_that_are_passed_on() {
        let code = |raw: i32| exit_code(ExitStatus::from_raw(raw));
        assert_eq!((code(0), code(7 << 8), code(15)), (0, 7, 128 + 15));
    }
}
