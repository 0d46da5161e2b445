//! One command, started and struck down.

use super::commands::{Ground, Kind};
use anyhow::Context;
use clap::ValueEnum;
use jitterscope_testing::SplitMix64;
use rustix::process::{Pid, Signal, kill_process};
use std::fmt;
use std::fs;
use std::process::{Child, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a command may take to end by itself, and a child of one that was killed to go.
const PATIENCE: Duration = Duration::from_secs(30);
/// By it the processes of a command are known, those of its children included.
const MARK: &str = "JITTERSCOPE_TORTURE";

/// The one signal to strike with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StrikeWith {
    /// What Ctrl-C sends
    Int,
    /// What a terminal sends that is closed
    Hup,
    /// What service managers send
    Term,
    /// What cannot be caught
    Kill,
}

impl StrikeWith {
    fn signal(self) -> Signal {
        match self {
            StrikeWith::Int => Signal::INT,
            StrikeWith::Hup => Signal::HUP,
            StrikeWith::Term => Signal::TERM,
            StrikeWith::Kill => Signal::KILL,
        }
    }
}

/// The signals that this process ignores, of those that a strike may be: what it starts inherits that, and a strike
/// with one of them would be none.
pub fn ignored() -> anyhow::Result<Vec<&'static str>> {
    let status =
        fs::read_to_string("/proc/self/status").context("/proc/self/status cannot be read")?;
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .map(str::trim);
    let mask = mask.and_then(|mask| u64::from_str_radix(mask, 16).ok());
    let mask = mask.context("/proc/self/status does not say which signals are ignored")?;
    let signals = [
        (Signal::HUP, "HUP"),
        (Signal::INT, "INT"),
        (Signal::TERM, "TERM"),
    ];
    let is_ignored = |signal: Signal| mask >> (signal.as_raw() - 1) & 1 == 1;
    Ok(signals
        .into_iter()
        .filter(|(signal, _)| is_ignored(*signal))
        .map(|(_, name)| name)
        .collect())
}

/// When to strike, and with what: signals, and the pause after each.
pub struct Blow {
    after: Duration,
    signals: Vec<(Signal, Duration)>,
}

impl Blow {
    /// Half of them are SIGKILL; the others are what terminals, service managers and users send. With `only` it is
    /// that one, once.
    pub fn draw(random: &mut SplitMix64, span: Duration, only: Option<StrikeWith>) -> Blow {
        let after = Duration::from_micros(
            random.below(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)),
        );
        if let Some(only) = only {
            return Blow {
                after,
                signals: vec![(only.signal(), Duration::ZERO)],
            };
        }
        let soon = Duration::from_millis(random.below(200));
        let later = Duration::from_millis(600 + random.below(400));
        let signals = match random.below(12) {
            0..6 => vec![(Signal::KILL, Duration::ZERO)],
            6 => vec![(Signal::TERM, Duration::ZERO)],
            7 => vec![(Signal::INT, Duration::ZERO)],
            8 => vec![
                (Signal::HUP, soon),
                (Signal::HUP, soon),
                (Signal::HUP, Duration::ZERO),
            ],
            // A second Ctrl-C, too soon to be one and late enough.
            9 => vec![
                (Signal::INT, soon),
                (Signal::INT, later),
                (Signal::INT, Duration::ZERO),
            ],
            10 => vec![
                (Signal::HUP, soon),
                (Signal::TERM, soon),
                (Signal::INT, Duration::ZERO),
            ],
            _ => vec![(Signal::TERM, soon), (Signal::KILL, Duration::ZERO)],
        };
        Blow { after, signals }
    }

    pub fn is_kill(&self) -> bool {
        self.signals
            .iter()
            .any(|(signal, _)| *signal == Signal::KILL)
    }
}

impl fmt::Display for Blow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |signal: Signal| match signal {
            Signal::KILL => "KILL",
            Signal::TERM => "TERM",
            Signal::INT => "INT",
            _ => "HUP",
        };
        let names: Vec<&str> = self
            .signals
            .iter()
            .map(|(signal, _)| name(*signal))
            .collect();
        write!(f, "{:>4} ms {}", self.after.as_millis(), names.join("+"))
    }
}

/// Starts it, strikes, waits for its end. Returns how it ended.
pub fn strike(
    ground: &Ground,
    kind: &Kind,
    blow: &Blow,
    found: &mut Vec<String>,
) -> anyhow::Result<String> {
    let mut child = ground
        .command(&ground.arguments(kind))
        .env(MARK, std::process::id().to_string())
        .spawn()
        .context("the program cannot be started")?;
    sleep(blow.after);
    for (signal, pause) in &blow.signals {
        // One that has ended is not waited for yet, so that the number is still its own.
        if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
            let _ = kill_process(pid, *signal);
        }
        sleep(*pause);
    }
    let end = match wait(&mut child)? {
        Some(status) => {
            // What does nothing cannot leave anything either.
            if matches!(status.code(), Some(2 | 4 | 101)) {
                found.push(format!(
                    "it could not do what it was to do ({status}), or panicked"
                ));
            }
            status
        }
        None => {
            found.push(format!("it did not end within {PATIENCE:?}"));
            child.kill()?;
            child.wait()?
        }
    };
    let until = Instant::now() + PATIENCE;
    let mut survivors = marked();
    while !survivors.is_empty() && Instant::now() < until {
        sleep(Duration::from_millis(50));
        survivors = marked();
    }
    for (pid, what) in survivors {
        found.push(format!("process {pid} lives on: {what}"));
        if let Some(pid) = Pid::from_raw(pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    Ok(format!("{end} (pid {})", child.id()))
}

fn wait(child: &mut Child) -> anyhow::Result<Option<ExitStatus>> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        sleep(Duration::from_millis(10));
    }
    Ok(None)
}

/// Living processes with our mark, and what they run.
fn marked() -> Vec<(i32, String)> {
    let mark = format!("{MARK}={}", std::process::id());
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let look = |entry: fs::DirEntry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        // A zombie's is empty.
        let environment = fs::read(entry.path().join("environ")).ok()?;
        let ours = environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == mark.as_bytes());
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        ours.then(|| (pid, String::from_utf8_lossy(&line).replace('\0', " ")))
    };
    processes.flatten().filter_map(look).collect()
}
