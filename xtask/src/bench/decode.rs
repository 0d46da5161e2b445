//! The ring-buffer decoder.

use super::claim::{Claim, Verdict};
use super::{bench_json, number};

/// Minimum of events decoded a second on any machine: twenty times the load of one CPU's recording.
const LEAST: f64 = 5e6;

pub fn claims() -> anyhow::Result<Vec<Claim>> {
    let json = bench_json("jitterscope-source", "decode", &[])?;
    let rate = number(&json, "events_per_second")?;
    Ok(vec![Claim {
        what: "events decoded a second on one core".into(),
        measured: format!("{:.1} M", rate / 1e6),
        target: format!(">= {:.0} M", LEAST / 1e6),
        verdict: Verdict::of(rate >= LEAST),
    }])
}
