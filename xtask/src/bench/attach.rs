//! The cost of `attach` for the followed threads: two processes that exchange a byte on one CPU, and a Redis server
//! under load, followed and not, in alternating turns. Compared with `perf sched record`.

use super::claim::{Claim, Verdict};
use super::tool::Runs;
use super::turns::{judged, median, noise, ratios, timed};
use crate::{packages, shell};
use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Turns of each variant, including one warm-up.
const TURNS: usize = 6;
/// Round trips of a ping-pong.
const ROUNDS: &str = "100000";
/// Requests of a load.
const REQUESTS: &str = "200000";
/// Minimum of the remaining speed of a ping-pong on one CPU.
const PIPE_LEAST: f64 = 0.87;
/// Minimum of the remaining request rate of a server.
const REDIS_LEAST: f64 = 0.95;
/// Timeout for a server or a recorder to begin.
const PATIENCE: Duration = Duration::from_secs(20);

/// The tool that follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum With {
    Nobody,
    Attach,
    Perf,
}

pub fn claims() -> anyhow::Result<Vec<Claim>> {
    if let [program, ..] = packages::missing(&packages::BENCH)[..] {
        let why = format!("{program} is not installed (--yes installs it)");
        let what = "speed of a ping-pong and of a Redis server";
        return Ok(vec![Claim::skipped(what, format!(">= {PIPE_LEAST}"), why)]);
    }
    let runs = Runs::new("bench-attach")?;
    let folder = tempfile::tempdir()?;
    let turns = [With::Nobody, With::Attach, With::Perf];
    let mut seconds: [Vec<f64>; 3] = Default::default();
    let mut requests: [Vec<f64>; 3] = Default::default();
    let server = Server::start(folder.path())?;
    let began = Instant::now();
    for turn in 0..TURNS {
        // The order rotates, so that a drift of the machine favours none.
        for n in 0..turns.len() {
            let at = (turn + n) % turns.len();
            let took = ping(&runs, folder.path(), turns[at])?;
            let served = server.load(&runs, folder.path(), turns[at])?;
            if turn > 0 {
                seconds[at].push(took);
                requests[at].push(served);
            }
        }
    }
    drop(server);
    let took = began.elapsed();
    // Speed is the inverse of time.
    let speeds = |at: usize| ratios(&seconds[0], &seconds[at]);
    println!(
        "ping-pong: {:.0} round trips a second alone, {:.2} of that with attach, {:.2} with perf sched record",
        ROUNDS.parse::<f64>()? / median(seconds[0].clone()),
        median(speeds(1)),
        median(speeds(2)),
    );
    println!(
        "Redis: {:.0} requests a second alone, {:.2} of that with attach, {:.2} with perf sched record",
        median(requests[0].clone()),
        median(ratios(&requests[1], &requests[0])),
        median(ratios(&requests[2], &requests[0])),
    );
    Ok(vec![
        claim(
            "a pipe ping-pong's speed under attach",
            &speeds(1),
            noise(&seconds[0]),
            PIPE_LEAST,
            took,
        ),
        claim(
            "a Redis server's requests under attach",
            &ratios(&requests[1], &requests[0]),
            noise(&requests[0]),
            REDIS_LEAST,
            took,
        ),
    ])
}

fn claim(what: &str, ratios: &[f64], noise: f64, least: f64, took: Duration) -> Claim {
    let claim = Claim::at_least(what, median(ratios.to_vec()), least);
    let verdict = judged(
        claim.verdict == Verdict::Holds,
        1.0 - least,
        noise,
        (ratios.len(), took),
    );
    Claim { verdict, ..claim }
}

/// Seconds of a ping-pong on one CPU.
fn ping(runs: &Runs, folder: &Path, with: With) -> anyhow::Result<f64> {
    let results = folder.join("ping");
    let cpu = super::tool::highest_cpu()?;
    // To a file, because the following tool prints its own report.
    let pipe = format!(
        "exec taskset -c {cpu} perf bench -f simple sched pipe -l {ROUNDS} >'{}'",
        results.display()
    );
    let program = runs.program();
    let (program, runs_folder) = (
        program.display().to_string(),
        runs.folder().display().to_string(),
    );
    let data = folder.join("perf.data").display().to_string();
    match with {
        With::Nobody => shell::output("sh", &["-c", &pipe])?,
        With::Attach => shell::output(
            &program,
            &[
                "--runs",
                &runs_folder,
                "attach",
                "--quiet",
                "--",
                "sh",
                "-c",
                &pipe,
            ],
        )?,
        With::Perf => shell::output("perf", &["sched", "record", "-o", &data, "sh", "-c", &pipe])?,
    };
    let text = fs::read_to_string(&results).with_context(|| results.display().to_string())?;
    text.trim()
        .parse()
        .with_context(|| format!("perf bench printed {text:?}"))
}

/// A Redis server with its own socket and no persistence; dropping this ends it.
struct Server {
    process: Child,
    socket: PathBuf,
}

impl Server {
    fn start(folder: &Path) -> anyhow::Result<Server> {
        let socket = folder.join("redis");
        let process = Command::new("redis-server")
            .args([
                "--port",
                "0",
                "--save",
                "",
                "--appendonly",
                "no",
                "--unixsocket",
            ])
            .arg(&socket)
            .current_dir(folder)
            .stdout(Stdio::null())
            .spawn()
            .context("redis-server cannot be started")?;
        let server = Server { process, socket };
        wait_for("redis-server", || Ok(server.socket.exists()))?;
        Ok(server)
    }

    /// Requests a second of a load.
    fn load(&self, runs: &Runs, folder: &Path, with: With) -> anyhow::Result<f64> {
        let pid = self.process.id().to_string();
        let follower = match with {
            With::Nobody => None,
            With::Attach => Some(Follower::attach(runs, &pid)?),
            With::Perf => {
                let data = folder.join("perf.data").display().to_string();
                // For one process, as `perf sched record` does.
                Some(Follower::start(
                    Command::new("perf").args(["sched", "record", "-o", &data, "-p", &pid]),
                )?)
            }
        };
        let socket = self.socket.display().to_string();
        let text = shell::output(
            "redis-benchmark",
            &[
                "-s", &socket, "-t", "get", "-n", REQUESTS, "-c", "20", "--csv",
            ],
        )?;
        if let Some(follower) = follower {
            follower.end()?;
        }
        // "test","rps",...
        let line = text
            .lines()
            .find(|line| line.starts_with("\"GET\""))
            .context("no line of GET")?;
        let field = line.split(',').nth(1).context("no requests a second")?;
        field
            .trim_matches('"')
            .parse()
            .with_context(|| format!("redis-benchmark printed {line:?}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The tool that follows the server meanwhile.
struct Follower(Child);

impl Follower {
    fn attach(runs: &Runs, pid: &str) -> anyhow::Result<Follower> {
        let mut command = Command::new(runs.program());
        command
            .arg("--runs")
            .arg(runs.folder())
            .args(["attach", "--quiet", "-d", "10m", "--pid", pid]);
        Follower::start(&mut command)
    }

    fn start(command: &mut Command) -> anyhow::Result<Follower> {
        let began = Instant::now();
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot follow")?;
        let mut follower = Follower(child);
        // Neither reports when it has begun; both begin within this time.
        while began.elapsed() < Duration::from_secs(2) {
            ensure!(
                follower.0.try_wait()?.is_none(),
                "who follows ended at once"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(follower)
    }

    /// Ends it as a user would, and waits for it.
    fn end(mut self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.0.id())
            .ok()
            .and_then(Pid::from_raw)
            .context("no such process id")?;
        kill_process(pid, Signal::INT)?;
        let (_, took) = timed(|| Ok(self.0.wait()?))?;
        ensure!(took < PATIENCE, "who follows took {took:?} to end");
        Ok(())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_for(what: &str, mut there: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let began = Instant::now();
    while !there()? {
        ensure!(
            began.elapsed() < PATIENCE,
            "{what} has not begun within {PATIENCE:?}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
