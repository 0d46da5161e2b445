//! One trial: a recording, faults meanwhile, and the logs of both.

use super::injector::Injector;
use super::judge::{self, Judged};
use super::kinds::{Fault, Probe, Trial};
use super::stored::Recording;
use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Limit on the length of a recording.
const LONGEST: &str = "120s";
/// Timeout for a recorder to begin, and to end.
const PATIENCE: Duration = Duration::from_secs(90);

/// The folder of a trial's files: `faults.json`, `rows.json`, `details.json`, `commit`.
fn folder_of(trial: &Trial, folder: &Path) -> PathBuf {
    folder.join(trial.to_string())
}

/// The measured CPU, the highest allowed one, and another, the lowest.
fn cpus() -> anyhow::Result<(String, String)> {
    let allowed = rustix::thread::sched_getaffinity(None)?;
    let mut cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let other = cpus.next().context("no CPU is allowed")?;
    let measured = cpus.next_back().context("two CPUs are needed")?;
    Ok((measured.to_string(), other.to_string()))
}

fn arguments<'a>(probe: Probe, cpu: &'a str, victim: &'a str) -> Vec<&'a str> {
    match probe {
        Probe::Spin => vec!["record", "spin", "--cpus", cpu],
        Probe::Wakeup => vec!["record", "wakeup", "--cpus", cpu],
        Probe::Attach => vec!["attach", "--tid", victim, "--threshold", "100ns"],
        Probe::Passive => vec!["record", "none", "--cpus", cpu, "--for", victim],
    }
}

/// Waits for a program's end, and kills it after the timeout.
fn ended(child: &mut Child) -> anyhow::Result<()> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "the recording failed ({status})");
            return Ok(());
        }
        if begin.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            bail!("the recording did not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether an unfinished run has kernel pages yet.
fn has_pages(runs: &Path) -> bool {
    let entries = |folder: &Path| {
        std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
            .map(|entry| entry.path())
    };
    entries(runs).any(|run| entries(&run.join("trace/segments")).next().is_some())
}

/// Waits until a recording measures. An earlier injection is detected when it is judged.
fn begun(recorder: &mut Child, runs: &Path) -> anyhow::Result<()> {
    let begin = Instant::now();
    while !has_pages(runs) {
        ensure!(
            recorder.try_wait()?.is_none() && begin.elapsed() < PATIENCE,
            "the recording did not begin"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    // Pages of the warm-up are kept, too.
    std::thread::sleep(Duration::from_millis(800));
    Ok(())
}

/// Records during a trial's faults and keeps the logs of both; the run stays in the trial's folder.
pub fn record(
    trial: &Trial,
    count: usize,
    program: &Path,
    injector: &Path,
    folder: &Path,
) -> anyhow::Result<()> {
    let to = folder_of(trial, folder);
    let _ = std::fs::remove_dir_all(&to);
    std::fs::create_dir_all(&to)?;
    let (cpu, other) = cpus()?;
    let runs = to.join("runs");
    let (count, place) = (count.to_string(), to.to_string_lossy());
    let args = [trial.kind, &count, &cpu, &other, &place, trial.victim];
    let mut injector = Injector::start(injector, &args)?;
    let mut recorder = Command::new(program)
        .args(arguments(trial.probe, &cpu, &injector.victim.to_string()))
        .args([
            "--duration",
            LONGEST,
            "--quiet",
            "--json",
            "--label",
            trial.kind,
            "--runs",
        ])
        .arg(&runs)
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| program.display().to_string())?;
    begun(&mut recorder, &runs)?;
    let faults = injector.inject();
    std::thread::sleep(Duration::from_millis(300));
    if let Some(pid) = Pid::from_raw(recorder.id().try_into()?) {
        // A process started in the background by a shell ignores SIGINT, and so do its children.
        kill_process(pid, Signal::TERM)?;
    }
    let ended = ended(&mut recorder);
    std::fs::write(to.join("faults.json"), serde_json::to_vec(&faults?)?)?;
    ended?;
    drop(injector);
    let run = std::fs::read_dir(&runs)?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.join("details.json").is_file())
        .context("no run was stored")?;
    std::fs::copy(run.join("details.json"), to.join("details.json"))?;
    let target = format!("json://{}", to.join("rows.json").display());
    let status = Command::new(program)
        .args(["export", "--quiet", "--to", &target])
        .arg(&run)
        .status()?;
    ensure!(status.success(), "the run cannot be exported ({status})");
    Ok(())
}

/// Keeps the commit of the program that recorded, because `--again` judges it later.
pub fn keep_commit(trial: &Trial, folder: &Path, commit: &str) -> anyhow::Result<()> {
    Ok(std::fs::write(
        folder_of(trial, folder).join("commit"),
        commit,
    )?)
}

pub fn commit(trial: &Trial, folder: &Path) -> String {
    std::fs::read_to_string(folder_of(trial, folder).join("commit"))
        .unwrap_or_else(|_| "unknown".into())
}

/// Compares what was recorded with what was injected.
pub fn judge(trial: &Trial, folder: &Path) -> anyhow::Result<Vec<Judged>> {
    let at = folder_of(trial, folder);
    let faults = std::fs::read(at.join("faults.json")).with_context(|| at.display().to_string())?;
    let faults: Vec<Value> = serde_json::from_slice(&faults)?;
    let recording = Recording::read(&at.join("details.json"), &at.join("rows.json"))?;
    let faults: Vec<Fault> = faults.into_iter().map(Fault).collect();
    (0..faults.len())
        .map(|at| {
            ensure!(
                faults[at].begin() > recording.begin && faults[at].end() < recording.end,
                "{trial}: a fault was injected while nothing was measured"
            );
            Ok(judge::judge(trial, &faults, at, &recording))
        })
        .collect()
}
