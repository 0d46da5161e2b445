//! A list of stored runs, beside one of runs whose manifest is one file.

use super::{Claim, Verdict, bench_json, number};

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
    let ratio = of("ratio")?;
    Ok(vec![Claim {
        what: "a run in a list, whole to head".into(),
        measured: format!("{ratio:.1}"),
        target: ">= 10".into(),
        verdict: Verdict::of(ratio >= 10.0),
    }])
}
