//! Starts one command and kills it.

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

/// How long a command may be idle before it must have ended, and how long a child of a killed one may take to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// The limit for a command that uses the CPU: under load, a debug build summarizes a pipeline for a minute.
const LONGEST: Duration = Duration::from_secs(180);
/// CPU use from which a command counts as working.
const WORKS: f64 = 0.02;
/// Marks the processes of a command, including its children.
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

/// The signals of a strike that this process ignores: its children inherit that, so such a signal would have no effect.
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

/// The time and the signals of a strike, with the pause after each signal.
pub struct Blow {
    after: Duration,
    signals: Vec<(Signal, Duration)>,
}

impl Blow {
    /// Half of the strikes are SIGKILL; the others are what terminals, service managers and users send. With `only`, it
    /// is that signal once.
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
            // Two more Ctrl-C: one too early to count as a second one, one late enough.
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

/// The result of a strike.
pub struct Struck {
    /// Whether the command still ran when the first signal was sent.
    pub running: bool,
    pub end: String,
}

/// Starts the command, strikes it, and waits for its end.
pub fn strike(
    ground: &Ground,
    kind: &Kind,
    blow: &Blow,
    found: &mut Vec<String>,
) -> anyhow::Result<Struck> {
    let mut child = ground
        .command(&ground.arguments(kind))
        .env(MARK, std::process::id().to_string())
        .spawn()
        .context("the program cannot be started")?;
    sleep(blow.after);
    let running = child.try_wait()?.is_none();
    for (signal, pause) in &blow.signals {
        // An ended process has not been reaped, so its id is still its own.
        if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
            let _ = kill_process(pid, *signal);
        }
        sleep(*pause);
    }
    let end = match wait(&mut child)? {
        Some(status) => {
            // A command that did nothing cannot leave anything behind.
            if matches!(status.code(), Some(2 | 4 | 101)) {
                found.push(format!(
                    "it could not do what it was to do ({status}), or panicked"
                ));
            }
            status
        }
        None => {
            found.push("it does not end".into());
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
    let end = format!("{end} (pid {})", child.id());
    Ok(Struck { running, end })
}

fn wait(child: &mut Child) -> anyhow::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    let (mut since, mut spent) = (begun, ticks_spent(child.id()));
    while begun.elapsed() < LONGEST {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if since.elapsed() >= PATIENCE {
            let now = ticks_spent(child.id());
            let works =
                PATIENCE.as_secs_f64() * rustix::param::clock_ticks_per_second() as f64 * WORKS;
            if (now.saturating_sub(spent) as f64) < works {
                return Ok(None);
            }
            (since, spent) = (Instant::now(), now);
        }
        sleep(Duration::from_millis(10));
    }
    Ok(None)
}

/// CPU time of a process, in the kernel's clock ticks.
fn ticks_spent(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // After the name, which may contain any byte: the state is the third field, user and system time are the 14th and
    // 15th.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    let times = fields.split_whitespace().skip(11).take(2);
    times.filter_map(|time| time.parse::<u64>().ok()).sum()
}

/// Running processes with our mark, and their commands.
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
