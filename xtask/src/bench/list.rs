//! A list of stored runs, beside one of runs whose manifest is one file.

use super::claim::Claim;
use super::{bench_json, number};

/// Times that a head is read while a whole manifest is.
const LEAST: f64 = 10.0;

pub fn claims() -> anyhow::Result<Vec<Claim>> {
    let json = bench_json("jitterscope-store", "list")?;
    let of = |field: &str| number(&json, field);
    println!(
        "listing {:.0} runs: {:.4} ms a run of {:.0} bytes whole, {:.4} ms by its head of {:.0} bytes",
        of("runs")?,
        of("whole_ms_per_run")?,
        of("manifest_bytes")?,
        of("head_ms_per_run")?,
        of("head_bytes")?,
    );
    Ok(vec![Claim::at_least(
        "a run in a list, whole to head",
        of("ratio")?,
        LEAST,
    )])
}
