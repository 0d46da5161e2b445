//! The ring-buffer decoder.

use super::{Claim, Verdict, bench_json, number};

pub fn claims() -> anyhow::Result<Vec<Claim>> {
    let json = bench_json("jitterscope-source", "decode")?;
    let rate = number(&json, "events_per_second")?;
    Ok(vec![Claim {
        what: "events decoded a second on one core".into(),
        measured: format!("{:.1} M", rate / 1e6),
        target: ">= 5 M".into(),
        verdict: Verdict::of(rate >= 5e6),
    }])
}
