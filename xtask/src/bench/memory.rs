//! Memory of a whole recorder, short and long: the kernel's figure, which the run has too.

use super::tool::Runs;
use super::{Claim, Verdict, bench_json, number};
use anyhow::Context;
use serde_json::Value;

/// MiB of a recorder of one CPU.
const MOST: f64 = 22.0;
/// A long run takes no more than that over a short one.
const GROWTH: f64 = 1.1;

/// An hour's rows take no more than that over those of five seconds, MiB.
const MOST_OF_ROWS: f64 = 2.0;

pub fn claims() -> anyhow::Result<Vec<Claim>> {
    let runs = Runs::new("bench-runs")?;
    let mut peaks = Vec::new();
    for duration in ["5s", "40s"] {
        let report = runs.record(&["--duration", duration])?;
        let details = std::fs::read_to_string(Runs::path(&report)?.join("details.json"))?;
        let details: Value = serde_json::from_str(&details).context("details.json is no JSON")?;
        peaks.push(number(&details["self_noise"], "peak_rss_bytes")? / f64::from(1 << 20));
    }
    let (short, long) = (peaks[0], peaks[1]);
    let rows = bench_json("jitterscope-store", "rows")?;
    let mib = |field: &str| anyhow::Ok(number(&rows, field)? / f64::from(1 << 20));
    let more = mib("peak_bytes_with_footer")? - mib("short_peak_bytes")?;
    println!(
        "rows of {:.0} stalls, made up of a recorded run: {:.1} MiB, {:.0} ns of CPU time and {:.1} bytes a stall",
        number(&rows, "stalls")?,
        mib("peak_bytes_with_footer")?,
        number(&rows, "ns_per_stall")?,
        number(&rows, "gaps_bytes_per_stall")? + number(&rows, "attributions_bytes_per_stall")?,
    );
    let claim = |what: &str, measured: String, target: String, holds| Claim {
        what: what.into(),
        measured,
        target,
        verdict: Verdict::of(holds),
    };
    Ok(vec![
        claim(
            "peak memory, one CPU, 5 s",
            format!("{short:.1} MiB"),
            format!("<= {MOST} MiB"),
            short <= MOST,
        ),
        claim("peak memory, one CPU, 40 s", format!("{long:.1} MiB"), format!("<= {MOST} MiB"), long <= MOST),
        claim(
            "peak memory of 40 s, to that of 5 s",
            format!("{:.2}", long / short),
            format!("<= {GROWTH}"),
            long <= short * GROWTH,
        ),
        claim(
            "memory of an hour's rows over that of 5 s",
            format!("{more:.1} MiB"),
            format!("<= {MOST_OF_ROWS} MiB"),
            more <= MOST_OF_ROWS,
        ),
    ])
}
