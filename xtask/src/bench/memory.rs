//! Memory of a complete recorder, short and long: the kernel's figure, which the run contains, and the program's peak,
//! including its report. Also of simulated hours, through the engine's own sinks.

use super::claim::Claim;
use super::tool::Runs;
use super::{bench_json, number};
use anyhow::Context;
use serde_json::Value;

/// Maximum MiB of a recorder of one CPU: 20, plus 2 per CPU.
const MOST: f64 = 22.0;
/// Maximum ratio of a long run to a short one.
const GROWTH: f64 = 1.1;
/// Maximum of additional MiB of an hour's rows over those of ten seconds.
const MOST_OF_ROWS: f64 = 2.0;
/// Minimum ratio of the figure in the run to the kernel's figure for the whole program.
const REPORTED: f64 = 0.95;

pub fn claims() -> anyhow::Result<Vec<Claim>> {
    let runs = Runs::new("bench-memory")?;
    let (mut peaks, mut shares) = (Vec::new(), Vec::new());
    for duration in ["5s", "40s"] {
        let (report, whole) = runs.record_measured(&["--duration", duration])?;
        let details = std::fs::read_to_string(Runs::path(&report)?.join("details.json"))?;
        let details: Value = serde_json::from_str(&details).context("details.json is no JSON")?;
        let peak = number(&details["self_noise"], "peak_rss_bytes")? / f64::from(1 << 20);
        println!(
            "a recorder of one CPU for {duration}: {peak:.1} MiB reported, {whole:.1} MiB with its report"
        );
        peaks.push(peak.max(whole));
        shares.push(peak / whole);
    }
    let rows = bench_json("jitterscope-recording", "day", &[])?;
    let mib = |field: &str| anyhow::Ok(number(&rows, field)? / f64::from(1 << 20));
    let (short, hours) = (mib("short_peak_bytes")?, mib("peak_bytes_at_the_end")?);
    println!(
        "{:.0} hours made up of a recorded run, {:.0} stalls of {:.0} events: {hours:.1} MiB, of ten seconds {short:.1} \
         MiB; {:.0} ns of CPU time a stall",
        number(&rows, "hours")?,
        number(&rows, "stalls")?,
        number(&rows, "events")?,
        number(&rows, "ns_per_stall")?,
    );
    let shares = shares.into_iter().fold(f64::INFINITY, f64::min);
    Ok(vec![
        Claim::at_most("peak memory, one CPU, 5 s, MiB", peaks[0], MOST),
        Claim::at_most("peak memory, one CPU, 40 s, MiB", peaks[1], MOST),
        Claim::at_most(
            "peak memory of 40 s, to that of 5 s",
            peaks[1] / peaks[0],
            GROWTH,
        ),
        Claim::at_least(
            "what the run reports of it, to the kernel's figure",
            shares,
            REPORTED,
        ),
        Claim::at_most(
            "memory of an hour over that of 10 s, MiB",
            hours - short,
            MOST_OF_ROWS,
        ),
    ])
}
