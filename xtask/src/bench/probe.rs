//! The spin probe beside a bare loop, and its memory over time.

use super::{Claim, Verdict, bench_json, number};
use crate::shell;
use anyhow::Context;
use serde_json::Value;

pub fn claims() -> anyhow::Result<Vec<Claim>> {
    let json = bench_json("jitterscope-probe", "spin")?;
    let (rate, bare) = (number(&json, "samples_per_sec")?, number(&json, "bare_samples_per_sec")?);
    let ratio = number(&json, "samples_ratio")?;
    let coverage = number(&json, "coverage")?;
    let (floor, bare_floor) = (number(&json, "floor_ticks")?, number(&json, "bare_floor_ticks")?);
    let mut claims = vec![
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
    ];
    claims.extend(memory()?);
    Ok(claims)
}

/// Peak resident memory of a whole recorder of one CPU, short and long.
fn memory() -> anyhow::Result<Vec<Claim>> {
    shell::run("cargo", &["build", "--quiet", "--release", "--locked", "-p", "jitterscope"])?;
    let runs = shell::root().join("target/bench-runs");
    let mut claims = Vec::new();
    let mut peaks = Vec::new();
    for duration in ["5s", "40s"] {
        let runs = runs.to_string_lossy();
        let program = shell::root().join("target/release/jitterscope");
        let args = ["record", "--quiet", "--json", "--runs", &runs, "--duration", duration];
        let json: Value = serde_json::from_str(&shell::output(&program.to_string_lossy(), &args)?)?;
        let path = json["run"]["path"].as_str().context("the report names no run")?;
        let manifest = std::fs::read_to_string(std::path::Path::new(path).join("details.json"))?;
        let manifest: Value = serde_json::from_str(&manifest)?;
        let peak = number(&manifest["self_noise"], "peak_rss_bytes")? / f64::from(1 << 20);
        peaks.push(peak);
        claims.push(Claim {
            what: format!("peak memory of the recorder, one CPU, {duration}"),
            measured: format!("{peak:.1} MiB"),
            target: "< 16 MiB".into(),
            verdict: Verdict::of(peak < 16.0),
        });
    }
    std::fs::remove_dir_all(&runs).context("the bench's runs cannot be removed")?;
    Ok(claims)
}
