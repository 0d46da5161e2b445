//! The cost for the helper of moving kernel events from the buffer to the store.

use super::claim::{Claim, Verdict};
use super::{bench_json, number};
use anyhow::Context;

/// Minimum of events a second that one CPU's drain must take in without a loss.
const LEAST_DRAINED: f64 = 50_000.0;

pub fn claims() -> anyhow::Result<Vec<Claim>> {
    let json = bench_json("jitterscope-recording", "drain", &[])?;
    println!(
        "{:>9} {:>14} {:>10} {:>12} {:>16}",
        "sleepers", "events/s", "lost", "stalls", "helper ns/event"
    );
    for step in json["steps"]
        .as_array()
        .context("the bench's JSON has no steps")?
    {
        let of = |field: &str| number(step, field);
        let each = of("helper_ns")? / of("events")?.max(1.0);
        let (sleepers, rate, lost) = (of("sleepers")?, of("events_per_second")?, of("lost")?);
        println!(
            "{sleepers:>9} {rate:>14.0} {lost:>10} {:>12} {each:>16.0}",
            of("stalls")?
        );
    }
    let (rate, cost) = (
        number(&json, "events_per_second_without_loss")?,
        number(&json, "helper_ns_per_event")?,
    );
    println!(
        "each event above those of a quiet CPU costs the helper {cost:.0} ns, its stall and its row included"
    );
    let (drain, writer) = (
        number(&json, "drain_ns_per_event_apart")?,
        number(&json, "writer_ns_per_event_apart")?,
    );
    let loaded = json["apart"]
        .as_array()
        .and_then(|apart| apart.last())
        .context("the bench's JSON has no run apart")?;
    println!(
        "with the rows on a thread of their own, at {:.0} sleepers and {:.0} events/s ({} lost): {drain:.0} ns an event \
         in the thread that drains, {writer:.0} ns in the other, so {:.2} of both, on {} helper CPU(s)",
        number(loaded, "sleepers")?,
        number(loaded, "events_per_second")?,
        number(loaded, "lost")?,
        drain / (drain + writer).max(1.0),
        number(loaded, "helper_cpus")?
    );
    Ok(vec![Claim {
        what: "events a second of one CPU without a loss".into(),
        measured: format!("{:.0} k", rate / 1e3),
        target: format!(">= {:.0} k", LEAST_DRAINED / 1e3),
        verdict: Verdict::of(rate >= LEAST_DRAINED),
    }])
}
