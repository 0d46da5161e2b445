//! Threads that still wait when a recording of them ends: what one costs, of few and of many.

use super::{Claim, Verdict, bench_json, number};

/// A thread of 20,000 takes no more than so many times what one of 1,000 takes.
const MOST_RATIO: f64 = 2.0;
/// Slices told of 20,000 waits.
const MOST_SLICES: f64 = 400_000.0;

pub fn claims() -> anyhow::Result<Vec<Claim>> {
    let json = bench_json("jitterscope-attribute", "threads")?;
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
    let slices = of("slices_20000")?;
    Ok(vec![
        Claim {
            what: "a waiting thread's end, one of 20,000 to 1,000".into(),
            measured: format!("{ratio:.2}"),
            target: format!("<= {MOST_RATIO}"),
            verdict: Verdict::of(ratio <= MOST_RATIO),
        },
        Claim {
            what: "slices told of 20,000 waits".into(),
            measured: format!("{slices:.0}"),
            target: format!("<= {MOST_SLICES}"),
            verdict: Verdict::of(slices <= MOST_SLICES),
        },
    ])
}
