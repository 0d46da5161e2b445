//! `attach` to very many threads: the total time of a two-second recording relative to those two seconds, and how fast
//! it ends on request. Also the cost of ending each waiting thread, for few and many of them, with synthetic records.

use super::claim::Claim;
use super::tool::Runs;
use super::turns::timed;
use super::{bench_json, number};
use crate::shell;
use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Number of threads, and the maximum ratio of a two-second recording's total time to two seconds.
const REACHES: [(u32, f64); 3] = [(1000, 1.25), (4000, 1.5), (20_000, 2.5)];
/// Recorded seconds.
const TIME: u32 = 2;
/// Limit of threads in one process.
const MOST_IN_ONE: u32 = 8000;
/// Maximum time from SIGTERM to the prompt, with 20,000 threads.
const SOON: Duration = Duration::from_secs(1);
/// Timeout for a recording to end, and for threads to begin.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum ratio of the cost per thread of 20,000 threads to that of 1,000.
const MOST_RATIO: f64 = 2.0;
/// Maximum of slices reported for 20,000 waits.
const MOST_SLICES: f64 = 400_000.0;
/// Total wake-ups a second, for any number of threads.
const WAKE_UPS: u32 = 10_000;

pub fn claims() -> anyhow::Result<Vec<Claim>> {
    let mut claims = of_waits()?;
    let runs = Runs::new("bench-threads")?;
    for (count, most) in REACHES {
        let crowd = Crowd::start(count)?;
        let mut recorder = attach(&runs, TIME)?;
        let ended = ends_within(&mut recorder, PATIENCE)?;
        let took =
            ended.with_context(|| format!("not ended after {PATIENCE:?}, of {count} threads"))?;
        println!(
            "attach to {count} threads: {:.2} s for {TIME} s",
            took.as_secs_f64()
        );
        let what = format!("attach for {TIME} s to {count} threads, to those");
        claims.push(Claim::at_most(
            what,
            took.as_secs_f64() / f64::from(TIME),
            most,
        ));
        if count == REACHES[REACHES.len() - 1].0 {
            claims.push(ends_when_asked(&runs)?);
        }
        drop(crowd);
    }
    Ok(claims)
}

/// Ends an unlimited recording, and checks that it kept its data.
fn ends_when_asked(runs: &Runs) -> anyhow::Result<Claim> {
    let mut recorder = attach(runs, 600)?;
    sleep(Duration::from_secs(3));
    let pid = i32::try_from(recorder.0.id())
        .ok()
        .and_then(Pid::from_raw)
        .context("no such process id")?;
    kill_process(pid, Signal::TERM)?;
    let took = ends_within(&mut recorder, PATIENCE)?.context("a SIGTERM does not end it")?;
    let program = runs.program().display().to_string();
    let folder = runs.folder().display().to_string();
    let kept = shell::output(&program, &["--runs", &folder, "report", "latest", "--json"])?;
    let kept: serde_json::Value = serde_json::from_str(&kept).context("the report is no JSON")?;
    ensure!(
        kept["run"]["interrupted"] == true,
        "the run that was ended is not there"
    );
    let times = took.as_secs_f64() / SOON.as_secs_f64();
    Ok(Claim::at_most(
        "from a SIGTERM to the prompt, to a second",
        times,
        1.0,
    ))
}

/// The recorder's process; dropping this ends it.
struct Recorder(Child);

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn attach(runs: &Runs, seconds: u32) -> anyhow::Result<Recorder> {
    let mut command = Command::new(runs.program());
    command
        .arg("--runs")
        .arg(runs.folder())
        .args(["attach", "--quiet", "--comm", NAME, "-d"]);
    command
        .arg(format!("{seconds}s"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Ok(Recorder(
        command.spawn().context("attach cannot be started")?,
    ))
}

fn ends_within(recorder: &mut Recorder, patience: Duration) -> anyhow::Result<Option<Duration>> {
    let (ended, took) = timed(|| {
        let began = Instant::now();
        while recorder.0.try_wait()?.is_none() {
            if began.elapsed() > patience {
                return Ok(false);
            }
            sleep(Duration::from_millis(2));
        }
        Ok(true)
    })?;
    Ok(ended.then_some(took))
}

/// The name of its threads.
const NAME: &str = "js-crowd";

/// Processes with many threads that sleep and wake in turn; dropping this ends them.
struct Crowd(Vec<Child>);

impl Crowd {
    /// `xtask` starts itself for this.
    fn start(count: u32) -> anyhow::Result<Crowd> {
        let program = std::env::current_exe().context("this program's path")?;
        let mut crowd = Crowd(Vec::new());
        let mut left = count;
        while left > 0 {
            let some = left.min(MOST_IN_ONE);
            let period = Duration::from_secs(1) * count / WAKE_UPS;
            let mut command = Command::new(&program);
            command.args(["crowd", &some.to_string(), &period.as_millis().to_string()]);
            crowd.0.push(
                command
                    .stdout(Stdio::null())
                    .spawn()
                    .context("a crowd cannot be started")?,
            );
            left -= some;
        }
        let began = Instant::now();
        let of = |child: &Child| {
            let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id()));
            tasks.map_or(0, |tasks| tasks.count())
        };
        while crowd.0.iter().map(of).sum::<usize>() < count as usize {
            ensure!(
                began.elapsed() < PATIENCE,
                "the machine has no room for {count} threads"
            );
            sleep(Duration::from_millis(20));
        }
        Ok(crowd)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs threads that sleep and wake, each once per period, until killed.
pub fn crowd(count: u32, period: Duration) -> anyhow::Result<()> {
    let mut threads = Vec::new();
    for n in 0..count {
        let first = period * n / count.max(1);
        let sleeper = move || {
            sleep(first);
            loop {
                sleep(period);
            }
        };
        let thread = std::thread::Builder::new()
            .name(NAME.into())
            .stack_size(32 << 10);
        threads.push(
            thread
                .spawn(sleeper)
                .context("no room for another thread")?,
        );
    }
    for thread in threads {
        // It never ends by itself.
        let () = thread
            .join()
            .map_err(|_| anyhow::anyhow!("a thread of the crowd panicked"))?;
    }
    Ok(())
}

fn of_waits() -> anyhow::Result<Vec<Claim>> {
    let json = bench_json("jitterscope-attribute", "threads", &[])?;
    let of = |field: &str| number(&json, field);
    for n in ["1000", "4000", "20000"] {
        println!(
            "{n:>6} waiting threads: {:.2} s to the end of all, {:.0} slices",
            of(&format!("seconds_{n}"))?,
            of(&format!("slices_{n}"))?
        );
    }
    let each = of("seconds_20000")? / 20_000.0;
    let ratio = each / (of("seconds_1000")? / 1000.0);
    Ok(vec![
        Claim::at_most(
            "a waiting thread's end, one of 20,000 to 1,000",
            ratio,
            MOST_RATIO,
        ),
        Claim::at_most(
            "slices reported of 20,000 waits",
            of("slices_20000")?,
            MOST_SLICES,
        ),
    ])
}
