//! The spin probe compared with a bare loop and with similar tools.

use super::claim::{Claim, Verdict};
use super::{bench_json, number, peers};

/// Minimum share of wall time between two reads.
const LEAST_COVERAGE: f64 = 0.9999;
/// Minimum ratio of reads to those of a bare loop.
const LEAST_READS: f64 = 0.95;

pub fn claims() -> anyhow::Result<Vec<Claim>> {
    let json = bench_json("jitterscope-probe", "spin", &[])?;
    let (rate, bare) = (
        number(&json, "samples_per_sec")?,
        number(&json, "bare_samples_per_sec")?,
    );
    let cpu = json["cpu_model"].as_str().unwrap_or("unknown CPU");
    let step = json["tsc_step"].as_u64();
    let step = step.map_or("unknown".into(), |ticks| format!("{ticks} ticks"));
    println!("{cpu}; the TSC's step: {step}");
    let coverage = number(&json, "coverage")?;
    let (floor, bare_floor) = (
        number(&json, "floor_ticks")?,
        number(&json, "bare_floor_ticks")?,
    );
    println!(
        "the probe reads the clock {:.1} M times a second, a bare loop {:.1} M",
        rate / 1e6,
        bare / 1e6
    );
    let mut claims = vec![
        Claim {
            what: "coverage of wall time".into(),
            measured: format!("{:.4} %", coverage * 100.0),
            target: format!(">= {} %", LEAST_COVERAGE * 100.0),
            verdict: Verdict::of(coverage >= LEAST_COVERAGE),
        },
        Claim::at_least(
            "samples/s to those of a bare loop",
            number(&json, "samples_ratio")?,
            LEAST_READS,
        ),
        Claim {
            what: format!("floor in ticks, bare loop {bare_floor}"),
            measured: format!("{floor}"),
            target: format!("<= {}", bare_floor + 2.0),
            verdict: Verdict::of(floor <= bare_floor + 2.0),
        },
    ];
    claims.extend(peers::claims(rate)?);
    Ok(claims)
}
