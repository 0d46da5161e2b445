//! The cost of recording kernel events. For the measured CPU: with all events, with the coarse ones and without any, in
//! alternating turns. For another CPU meanwhile: compared with the unavoidable cost of active tracepoints.

use super::claim::Claim;
use super::floor;
use super::load::Load;
use super::number;
use super::tool::{Runs, allowed_cpus};
use super::turns::{judged, median, noise, ratios, timed};
use anyhow::{Context, ensure};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Turns of each variant, including one warm-up.
const TURNS: usize = 7;
const TIME: &str = "3s";
/// Maximum ratio of stolen time with tracing to stolen time without.
const MOST: f64 = 1.08;
/// Maximum of the same ratio with coarse events.
const MOST_COARSE: f64 = 1.05;
/// Minimum ratio of another CPU's speed with tracing to its speed with only active tracepoints.
const LEAST: f64 = 0.98;
/// Time from the start of a recording until it measures; the next is how long the other CPU's speed is measured then.
const SETTLED: Duration = Duration::from_millis(1200);
const WINDOW: Duration = Duration::from_millis(1500);

/// What is recorded besides the stalls.
#[derive(Clone, Copy)]
enum Arm {
    Traced,
    Coarse,
    Bare,
}

impl Arm {
    /// The options of `record` for it.
    fn options(self) -> &'static [&'static str] {
        match self {
            Arm::Traced => &[],
            Arm::Coarse => &["--events", "coarse"],
            Arm::Bare => &["--no-trace"],
        }
    }
}

/// A turn: the report, and round trips a second of the load on the other CPU, if there is one.
struct Turn {
    report: Value,
    speed: Option<f64>,
}

pub fn claims() -> anyhow::Result<Vec<Claim>> {
    let runs = Runs::new("bench-observer")?;
    let allowed = allowed_cpus()?;
    let (first, last) = (allowed.first().copied(), allowed.last().copied());
    let (Some(other), Some(measured)) = (first, last) else {
        anyhow::bail!("no CPU is allowed")
    };
    ensure!(other != measured, "two CPUs are needed");
    let mut claims = of_measured(&runs, measured)?;
    claims.push(of_other(&runs, measured, other, allowed.len())?);
    Ok(claims)
}

/// Turns of each arm, in rotating order, so that a drift of the machine favours none.
fn turns<const N: usize>(
    runs: &Runs,
    arms: [Arm; N],
    measured: usize,
    load: Option<usize>,
) -> anyhow::Result<[Vec<Turn>; N]> {
    let mut found: [Vec<Turn>; N] = std::array::from_fn(|_| Vec::new());
    let cpu = measured.to_string();
    for turn in 0..TURNS {
        for n in 0..N {
            let arm = (turn + n) % N;
            let args = [&["-d", TIME, "--cpus", &cpu], arms[arm].options()].concat();
            let one = match load {
                None => Turn {
                    report: runs.record(&args)?,
                    speed: None,
                },
                Some(on) => {
                    let load = Load::start(on)?;
                    std::thread::scope(|scope| {
                        let speed = scope.spawn(|| {
                            std::thread::sleep(SETTLED);
                            let (from, began) = (load.rounds(), Instant::now());
                            std::thread::sleep(WINDOW);
                            (load.rounds() - from) as f64 / began.elapsed().as_secs_f64()
                        });
                        let report = runs.record(&args)?;
                        let speed = speed.join().ok().context("the load was not measured")?;
                        anyhow::Ok(Turn {
                            report,
                            speed: Some(speed),
                        })
                    })?
                }
            };
            if turn > 0 {
                found[arm].push(one);
            }
        }
    }
    Ok(found)
}

fn of_measured(runs: &Runs, measured: usize) -> anyhow::Result<Vec<Claim>> {
    let arms = [Arm::Traced, Arm::Coarse, Arm::Bare];
    let ([traced, coarse, bare], took) = timed(|| turns(runs, arms, measured, None))?;
    print_price(&traced, "all events")?;
    print_price(&coarse, "coarse events")?;
    let stolen = |turns: &[Turn]| -> anyhow::Result<Vec<f64>> {
        turns
            .iter()
            .map(|turn| number(&turn.report["probe"]["total"], "stolen_fraction"))
            .collect()
    };
    let (with, some, without) = (stolen(&traced)?, stolen(&coarse)?, stolen(&bare)?);
    let noise = noise(&without);
    println!(
        "stolen with tracing {:.3} %, with coarse events {:.3} %, without {:.3} %; two turns without differ by a \
         factor of {noise:.2}",
        median(with.clone()) * 100.0,
        median(some.clone()) * 100.0,
        median(without.clone()) * 100.0
    );
    let claim = |what, with: &[f64], most: f64| {
        let ratio = median(ratios(with, &without));
        let verdict = judged(ratio <= most, most - 1.0, noise, (TURNS - 1, took));
        Claim {
            verdict,
            ..Claim::at_most(what, ratio, most)
        }
    };
    Ok(vec![
        claim("stolen time with tracing, to without", &with, MOST),
        claim("the same with --events coarse", &some, MOST_COARSE),
    ])
}

fn of_other(runs: &Runs, measured: usize, other: usize, allowed: usize) -> anyhow::Result<Claim> {
    let floor = floor::left()?;
    let ([traced, bare], took) =
        timed(|| turns(runs, [Arm::Traced, Arm::Bare], measured, Some(other)))?;
    let speeds =
        |turns: &[Turn]| -> Vec<f64> { turns.iter().filter_map(|turn| turn.speed).collect() };
    let (with, without) = (speeds(&traced), speeds(&bare));
    let (ratio, noise) = (median(ratios(&with, &without)), noise(&without));
    println!(
        "another CPU meanwhile: {:.0} round trips a second with tracing, {:.0} without; the tracepoints alone leave it \
         {floor:.3} of its speed",
        median(with),
        median(without)
    );
    if allowed == 2 {
        println!(
            "of two CPUs it is also the one that our helper has: what the helper takes is in it"
        );
    }
    let claim = Claim::at_least(
        "speed of another CPU, to what tracepoints leave it",
        ratio / floor,
        LEAST,
    );
    let verdict = judged(
        ratio / floor >= LEAST,
        1.0 - LEAST,
        noise,
        (TURNS - 1, took),
    );
    Ok(Claim { verdict, ..claim })
}

/// The cost of a record, as the tool measured it before each recording, and the number of records by class.
fn print_price(traced: &[Turn], which: &str) -> anyhow::Result<()> {
    let prices: Vec<&Value> = traced
        .iter()
        .map(|turn| &turn.report["trust"]["price"])
        .collect();
    let of = |field: &str| -> Vec<f64> {
        prices
            .iter()
            .filter_map(|price| price["record"][field].as_f64())
            .collect()
    };
    let (warm, cold) = (of("warm_ns"), of("cold_ns"));
    if warm.is_empty() {
        println!("{which}: what a record takes could not be measured");
    } else {
        println!(
            "{which}: a record takes {:.0} ns with warm caches, {:.0} ns with cold ones",
            median(warm),
            median(cold)
        );
    }
    let Some(events) = prices.last().and_then(|price| price["events"].as_object()) else {
        return Ok(());
    };
    for (class, count) in events {
        println!("{class:>14} {count:>10} events of the last turn");
    }
    Ok(())
}
