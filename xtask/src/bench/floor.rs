//! The cost of active tracepoints, by class, for a CPU that is not recorded. This is the lower bound for any recording
//! on the CPUs that it does not measure.

use super::claim::Claim;
use super::{bench_json, number};
use anyhow::Context;
use serde_json::Value;

pub fn claims() -> anyhow::Result<Vec<Claim>> {
    let json = bench_json("jitterscope-source", "floor", &[])?;
    let rows = json["rows"]
        .as_array()
        .context("the bench's JSON has no rows")?;
    println!(
        "two threads that pass a byte on one CPU, tracepoints on, only another CPU's records taken:"
    );
    println!(
        "{:<16} {:>9} {:>9} {:>8} {:>17} {:>9}",
        "on", "ns/pass", "more", "ratio", "of all turns", "hits/pass"
    );
    for row in rows {
        let cell = |field: &str, digits: usize| {
            row[field]
                .as_f64()
                .map_or("-".to_owned(), |value| format!("{value:.digits$}"))
        };
        let range = format!("{} to {}", cell("least", 3), cell("most", 3));
        let name = row["events"].as_str().unwrap_or_default();
        let (ns, more, ratio) = (cell("ns", 0), cell("more_ns", 1), cell("ratio", 3));
        println!(
            "{name:<16} {ns:>9} {more:>9} {ratio:>8} {range:>17} {:>9}",
            cell("per_pass", 2)
        );
    }
    println!(
        "two turns with nothing on differ by a factor of {:.3}",
        number(&json, "noise")?
    );
    // The kernel's own cost cannot be reduced.
    let row = |events: &str, what: &str| -> anyhow::Result<Claim> {
        let row = rows
            .iter()
            .find(|row| row["events"] == events)
            .with_context(|| format!("no row of {events}"))?;
        let ratio = row["ratio"]
            .as_f64()
            .with_context(|| format!("{events} was not measured"))?;
        Ok(Claim::figure_of_machine(what, ratio))
    };
    Ok(vec![
        row("all", "a pass beside all tracepoints that are on, to none")?,
        row("all, recorded", "the same, recorded, and read by nobody")?,
        row("all and charges", "the same, with the scheduler's charges")?,
    ])
}

/// The remaining share of another CPU's speed with all tracepoints active.
pub(super) fn left() -> anyhow::Result<f64> {
    let json: Value = bench_json("jitterscope-source", "floor", &[])?;
    let rows = json["rows"]
        .as_array()
        .context("the bench's JSON has no rows")?;
    let all = rows
        .iter()
        .find(|row| row["events"] == "all")
        .context("the bench has no row of all")?;
    Ok(1.0
        / all["ratio"]
            .as_f64()
            .context("all events on were not measured")?)
}
