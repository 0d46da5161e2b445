//! What recording the kernel's events takes from the CPU that is measured: the same CPU with tracing and without,
//! in turns, and what the tool says of that itself.

use super::tool::Runs;
use super::turns::{judged, median, noise, ratios};
use super::{Claim, Verdict, number};
use serde_json::Value;

/// Turns of each; the first of them warms up.
const TURNS: usize = 7;
const TIME: &str = "3s";
/// Stolen time with tracing, to that without.
const MOST: f64 = 1.08;

pub fn claims() -> anyhow::Result<Vec<Claim>> {
    let runs = Runs::new("bench-observer")?;
    let (mut traced, mut bare) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        // Each begins once, so that a drift of the machine favours none.
        let order = if turn % 2 == 0 { [true, false] } else { [false, true] };
        for with in order {
            let args: &[&str] = if with { &["-d", TIME] } else { &["-d", TIME, "--no-trace"] };
            let report = runs.record(args)?;
            if turn > 0 {
                if with { &mut traced } else { &mut bare }.push(report);
            }
        }
    }
    print_price(&traced)?;
    let stolen = |reports: &[Value]| -> anyhow::Result<Vec<f64>> {
        reports.iter().map(|report| number(&report["probe"]["total"], "stolen_fraction")).collect()
    };
    let (with, without) = (stolen(&traced)?, stolen(&bare)?);
    let (ratio, noise) = (median(ratios(&with, &without)), noise(&without));
    println!(
        "stolen with tracing {:.3} %, without {:.3} %; two turns without differ by a factor of {noise:.2}",
        median(with) * 100.0,
        median(without) * 100.0
    );
    let verdict = judged(ratio <= MOST, MOST - 1.0, noise, TURNS - 1);
    if verdict == Verdict::Noise {
        // The error of a median falls with the root of the turns.
        let turns = ((noise - 1.0) / (MOST - 1.0)).powi(2);
        println!("noise hides an effect of {MOST}: about {turns:.0} turns of {TIME} each would show it");
    }
    Ok(vec![Claim {
        what: "stolen time with tracing, to without".into(),
        measured: format!("{ratio:.3}"),
        target: format!("<= {MOST}"),
        verdict,
    }])
}

/// The floor of an event that is on, as the tool measured it before each recording, and how many came of what.
fn print_price(traced: &[Value]) -> anyhow::Result<()> {
    let prices: Vec<&Value> = traced.iter().map(|report| &report["trust"]["price"]).collect();
    let of = |field: &str| -> Vec<f64> {
        prices.iter().filter_map(|price| price["record"][field].as_f64()).collect()
    };
    let (warm, cold) = (of("warm_ns"), of("cold_ns"));
    if warm.is_empty() {
        println!("what a record takes could not be measured");
    } else {
        println!(
            "a record takes {:.0} ns with warm caches, {:.0} ns with cold ones",
            median(warm),
            median(cold)
        );
    }
    let Some(events) = prices.last().and_then(|price| price["events"].as_object()) else { return Ok(()) };
    for (class, count) in events {
        println!("{class:>14} {count:>10} events of the last turn");
    }
    Ok(())
}
