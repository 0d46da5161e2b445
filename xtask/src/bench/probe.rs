//! The spin probe beside a bare loop.

use super::{Claim, Verdict, bench_json, number};

pub fn claims() -> anyhow::Result<Vec<Claim>> {
    let json = bench_json("jitterscope-probe", "spin")?;
    let (rate, bare) = (number(&json, "samples_per_sec")?, number(&json, "bare_samples_per_sec")?);
    let ratio = number(&json, "samples_ratio")?;
    let coverage = number(&json, "coverage")?;
    let (floor, bare_floor) = (number(&json, "floor_ticks")?, number(&json, "bare_floor_ticks")?);
    Ok(vec![
        Claim {
            what: "coverage of wall time".into(),
            measured: format!("{:.4} %", coverage * 100.0),
            target: ">= 99.99 %".into(),
            verdict: Verdict::of(coverage >= 0.9999),
        },
        Claim {
            what: format!("samples/s, {:.1} M to {:.1} M of a bare loop", rate / 1e6, bare / 1e6),
            measured: format!("{ratio:.3}"),
            target: ">= 0.9".into(),
            verdict: Verdict::of(ratio >= 0.9),
        },
        Claim {
            what: format!("floor in ticks, bare loop {bare_floor}"),
            measured: format!("{floor}"),
            target: format!("<= {}", bare_floor + 2.0),
            verdict: Verdict::of(floor <= bare_floor + 2.0),
        },
    ])
}
