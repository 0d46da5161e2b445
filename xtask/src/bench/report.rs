//! What a user waits for: from the end of a recording to the prompt, and for reports, however long the run was.

use super::tool::Runs;
use super::turns::{median, timed};
use super::{Claim, Verdict};
use crate::shell;
use anyhow::Context;
use serde_json::Value;
use std::process::{Child, Command, Stdio};

/// Seconds of the long run.
const LONG: u32 = 30;
/// A report or a stall of the long run takes no more than so many times that of one of a second.
const MOST_RATIO: f64 = 1.5;
/// All of a recording of a second, to that second.
const MOST_SECOND: f64 = 1.3;
/// What a loaded long run takes beside its time may be so much more than what a short one does, as a part of a
/// second.
const MOST_MORE: f64 = 0.5;
/// Turns of each.
const TURNS: usize = 7;

pub fn claims() -> anyhow::Result<Vec<Claim>> {
    let runs = Runs::new("bench-prompt")?;
    let mut beside = Vec::new();
    for _ in 0..TURNS {
        beside.push(timed(|| runs.record(&["-d", "1s"]))?.1.as_secs_f64() - 1.0);
    }
    let short = runs.record(&["-d", "1s"])?;
    // Loaded: two processes that wake one another on the measured CPU, some 100,000 events a second.
    let load = Load::start()?;
    let (long, took) = timed(|| runs.record(&["-d", &format!("{LONG}s")]))?;
    drop(load);
    let (beside, end) = (median(beside), took.as_secs_f64() - f64::from(LONG));
    println!(
        "beside its time a recording of 1 s takes {beside:.2} s, a loaded one of {LONG} s {end:.2} s ({} stalls)",
        long["attribution"]["stalls"]
    );
    let mut claims = vec![
        claim("all of a recording of 1 s, to that second", 1.0 + beside, MOST_SECOND),
        claim("a loaded long run's end, seconds more than a short's", end - beside, MOST_MORE),
    ];
    for (what, more) in [("a report", None), ("a stall", Some("--stall"))] {
        let of = |report: &Value| -> anyhow::Result<f64> {
            let path = Runs::path(report)?.display().to_string();
            let stall = report["worst"][0]["stall"].to_string();
            let mut args = vec!["report", &path];
            args.extend(more.iter().flat_map(|option| [*option, &stall]));
            let program = runs.program().display().to_string();
            let mut times = Vec::new();
            for _ in 0..TURNS {
                times.push(timed(|| shell::output(&program, &args))?.1.as_secs_f64());
            }
            Ok(median(times))
        };
        let (of_short, of_long) = (of(&short)?, of(&long)?);
        println!("{what} of 1 s takes {:.0} ms, of {LONG} s loaded {:.0} ms", of_short * 1e3, of_long * 1e3);
        claims.push(claim(
            &format!("{what} of a long run, to that of a short"),
            of_long / of_short,
            MOST_RATIO,
        ));
    }
    Ok(claims)
}

fn claim(what: &str, measured: f64, most: f64) -> Claim {
    Claim {
        what: what.into(),
        measured: format!("{measured:.2}"),
        target: format!("<= {most}"),
        verdict: Verdict::of(measured <= most),
    }
}

/// A ping-pong on the measured CPU; it ends with this value.
struct Load(Child);

impl Load {
    fn start() -> anyhow::Result<Load> {
        let cpu = super::tool::highest_cpu()?.to_string();
        let rounds = "1000000000";
        // Threads: of two processes one would be left.
        let child = Command::new("taskset")
            .args(["-c", &cpu, "perf", "bench", "-f", "simple", "sched", "pipe", "-T", "-l", rounds])
            .stdout(Stdio::null())
            .spawn()
            .context("perf bench cannot be started")?;
        Ok(Load(child))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
