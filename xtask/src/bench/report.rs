//! What a user waits for: a recording of a second, the end of a long recording under load, and the reports of both and
//! of a pipeline.

use super::claim::Claim;
use super::load::Load;
use super::tool::{Runs, highest_cpu};
use super::turns::{median, timed};
use crate::shell;
use anyhow::{Context, ensure};
use serde_json::Value;

/// Seconds of the long run.
const LONG: u32 = 60;
/// Maximum ratio of the time for a report or a stall of the long run to that of a one-second run.
const MOST_RATIO: f64 = 1.5;
/// Maximum ratio of a pipeline report's time from stored sums to its time from rows.
const MOST_OF_ROWS: f64 = 0.2;
/// Maximum ratio of the total time of a one-second recording to that second.
const MOST_SECOND: f64 = 1.3;
/// Maximum time of the long run's end relative to its length: half a second.
const MOST_END: f64 = 0.5 / LONG as f64;
/// Minimum wake-ups a second of a valid load.
const LEAST_LOAD: f64 = 10_000.0;
/// Turns of each variant.
const TURNS: usize = 7;

pub fn claims() -> anyhow::Result<Vec<Claim>> {
    let runs = Runs::new("bench-report")?;
    let cpu = highest_cpu()?;
    let named = cpu.to_string();
    let second = ["-d", "1s", "--cpus", &named];
    let mut seconds = Vec::new();
    for _ in 0..TURNS {
        seconds.push(timed(|| runs.record(&second))?.1.as_secs_f64());
    }
    let short = runs.record(&second)?;
    let second = median(seconds);
    // A short recording takes as long before its measurement.
    let begins = second - 1.0;
    let load = Load::start(cpu)?;
    let length = format!("{LONG}s");
    let (long, took) = timed(|| runs.record(&["-d", &length, "--cpus", &named]))?;
    let rate = load.end()?;
    ensure!(
        rate > LEAST_LOAD,
        "the load passed its byte only {rate:.0} times a second"
    );
    let end = (took.as_secs_f64() - f64::from(LONG) - begins).max(0.0);
    println!(
        "beside its time a recording of 1 s takes {begins:.2} s, one of {LONG} s {:.2} s, under a load of {rate:.0} \
         wake-ups a second ({} stalls)",
        end + begins,
        long["attribution"]["stalls"]
    );
    let mut claims = vec![
        Claim::at_most(
            "all of a recording of 1 s, to that second",
            second,
            MOST_SECOND,
        ),
        Claim::at_most(
            format!("end of {LONG} s under load more than of 1 s, part of its length"),
            end / f64::from(LONG),
            (MOST_END * 1e4).round() / 1e4,
        ),
    ];
    let none = took_median(&runs, &["--version".into()])?;
    for (what, more) in [("a report", None), ("a stall", Some("--stall"))] {
        let of = |report: &Value| -> anyhow::Result<f64> {
            let path = Runs::path(report)?.display().to_string();
            let stall = report["worst"][0]["stall"].to_string();
            let mut args = vec!["report".to_owned(), path];
            args.extend(
                more.iter()
                    .flat_map(|option| [(*option).to_owned(), stall.clone()]),
            );
            took_median(&runs, &args)
        };
        let (of_short, of_long) = (of(&short)?, of(&long)?);
        println!(
            "{what} of 1 s takes {:.0} ms, of {LONG} s under load {:.0} ms; the program alone {:.0} ms",
            of_short * 1e3,
            of_long * 1e3,
            none * 1e3
        );
        claims.push(Claim::at_most(
            format!("{what} of a long run, to that of a short"),
            of_long / of_short,
            MOST_RATIO,
        ));
    }
    claims.push(of_messages(&runs)?);
    Ok(claims)
}

/// The time of a pipeline's report from stored sums, relative to the same from its rows, for as many slow messages as
/// get a row.
fn of_messages(runs: &Runs) -> anyhow::Result<Claim> {
    let report = runs.record(&["pipeline", "--force", "-d", "5s", "--threshold", "1us"])?;
    let run = Runs::path(&report)?;
    let args = ["report".to_owned(), run.display().to_string()];
    let of_stored = took_median(runs, &args)?;
    std::fs::rename(run.join("summary.json"), run.join("summary.aside"))
        .context("the run keeps no sums")?;
    let of_rows = took_median(runs, &args)?;
    println!(
        "a report of {} slow messages takes {:.0} ms, made of their rows {:.0} ms",
        report["attribution"]["stalls"],
        of_stored * 1e3,
        of_rows * 1e3
    );
    Ok(Claim::at_most(
        "a pipeline's report, to the same made of its rows",
        of_stored / of_rows,
        MOST_OF_ROWS,
    ))
}

/// Median time of the tool with these arguments, seconds.
fn took_median(runs: &Runs, args: &[String]) -> anyhow::Result<f64> {
    let program = runs.program();
    let program = program.to_str().context("the path is no UTF-8")?;
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut times = Vec::new();
    for _ in 0..TURNS {
        times.push(timed(|| shell::output(program, &args))?.1.as_secs_f64());
    }
    Ok(median(times))
}
