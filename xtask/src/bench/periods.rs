//! The search for periods over 3,000 runs of each process that has none.

use super::claim::{Claim, Verdict};
use crate::shell;
use anyhow::{Context, ensure};

/// Runs of each process.
const RUNS: u32 = 3000;
/// What the report states of one run; more alarms than that, by so many, would come in less than one of 1,000
/// such benches.
const MOST: u32 = RUNS / 1000 + 7;

/// Asks the calibration test, which prints how many runs showed a period, and fails by itself where they are
/// too many.
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

/// Of a line such as `bursts: 1 of 3000 runs`.
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
