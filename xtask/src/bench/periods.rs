//! The search for periods in 3,000 runs of each process without a period.

use super::claim::{Claim, Verdict};
use crate::shell;
use anyhow::{Context, ensure};

/// Runs of each process.
const RUNS: u32 = 3000;
/// Maximum of false alarms: the rate that the report states (one in 1,000 runs), plus a margin that chance exceeds in
/// less than one of 1,000 such benches.
const MOST: u32 = RUNS / 1000 + 7;

/// Runs the calibration test, which prints how many runs showed a period, and fails if there are too many.
pub fn claims() -> anyhow::Result<Vec<Claim>> {
    let test = [
        "test",
        "--release",
        "--locked",
        "-p",
        "jitterscope-analyze",
        "--test",
        "period_calibration",
    ];
    let which = [
        "--",
        "--ignored",
        "--nocapture",
        "processes_without_a_period_show_none",
    ];
    let args = [&test[..], &which[..]].concat();
    eprintln!("+ JITTERSCOPE_NULL_RUNS={RUNS} cargo {}", args.join(" "));
    let output = shell::command("cargo", &args)
        .env("JITTERSCOPE_NULL_RUNS", RUNS.to_string())
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let claims: Vec<Claim> = said.lines().filter_map(claim).collect();
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        !claims.is_empty(),
        "the calibration printed nothing ({}):\n{said}{errors}",
        output.status
    );
    Ok(claims)
}

/// Parses a line such as `bursts: 1 of 3000 runs`.
fn claim(line: &str) -> Option<Claim> {
    let (process, rest) = line.split_once(": ")?;
    let alarms = rest.strip_suffix(&format!(" of {RUNS} runs"))?;
    let alarms: u32 = alarms.parse().context("no number").ok()?;
    Some(Claim {
        what: format!("runs of {process} that show a period"),
        measured: format!("{alarms} of {RUNS}"),
        target: format!("<= {MOST}"),
        verdict: Verdict::of(alarms <= MOST),
    })
}
