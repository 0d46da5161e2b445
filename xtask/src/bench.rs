//! Measured claims: each a ratio within one run, or a count, never an absolute time.

mod pipeline;

use crate::shell;
use anyhow::{Context, bail};
use clap::ValueEnum;
use serde_json::Value;

/// What can be measured.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// The spin probe beside a bare loop, and its memory over time
    Probe,
    /// The ring-buffer decoder
    Decode,
    /// The probe with all of the sampler's outputs on, beside the probe with none
    Series,
    /// The pipeline probe beside a bare ping and beside Java's Disruptor
    Pipeline,
}

/// One claim and what was measured.
struct Claim {
    what: String,
    measured: String,
    target: String,
    holds: bool,
}

/// Runs the benches and prints each claim; fails when one does not hold.
pub fn run(what: Option<What>) -> anyhow::Result<()> {
    let mut claims = Vec::new();
    if what.is_none_or(|w| w == What::Probe) {
        claims.extend(probe()?);
    }
    if what.is_none_or(|w| w == What::Decode) {
        claims.extend(decode()?);
    }
    if what.is_none_or(|w| w == What::Series) {
        claims.extend(series()?);
    }
    if what.is_none_or(|w| w == What::Pipeline) {
        claims.extend(pipeline::claims()?);
    }
    println!("{:<44} {:>20} {:>18}", "claim", "measured", "target");
    for claim in &claims {
        let mark = if claim.holds { "" } else { "  MISSED" };
        println!("{:<44} {:>20} {:>18}{mark}", claim.what, claim.measured, claim.target);
    }
    if claims.iter().any(|claim| !claim.holds) {
        bail!("not every claim holds");
    }
    Ok(())
}

/// The last line of a bench's output that is JSON.
fn bench_json(package: &str, bench: &str) -> anyhow::Result<Value> {
    let text = shell::output("cargo", &["bench", "--quiet", "--locked", "-p", package, "--bench", bench])?;
    let line = text.lines().rev().find(|line| line.starts_with('{')).context("the bench printed no JSON")?;
    serde_json::from_str(line).context("the bench printed broken JSON")
}

fn number(json: &Value, field: &str) -> anyhow::Result<f64> {
    json[field].as_f64().with_context(|| format!("the bench's JSON has no number '{field}'"))
}

fn probe() -> anyhow::Result<Vec<Claim>> {
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
            holds: coverage >= 0.9999,
        },
        Claim {
            what: format!("samples/s, {:.1} M to {:.1} M of a bare loop", rate / 1e6, bare / 1e6),
            measured: format!("{ratio:.3}"),
            target: ">= 0.9".into(),
            holds: ratio >= 0.9,
        },
        Claim {
            what: format!("floor in ticks, bare loop {bare_floor}"),
            measured: format!("{floor}"),
            target: format!("<= {}", bare_floor + 2.0),
            holds: floor <= bare_floor + 2.0,
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
        let manifest = std::fs::read_to_string(std::path::Path::new(path).join("manifest.json"))?;
        let manifest: Value = serde_json::from_str(&manifest)?;
        let peak = number(&manifest["self_noise"], "peak_rss_bytes")? / f64::from(1 << 20);
        peaks.push(peak);
        claims.push(Claim {
            what: format!("peak memory of the recorder, one CPU, {duration}"),
            measured: format!("{peak:.1} MiB"),
            target: "< 16 MiB".into(),
            holds: peak < 16.0,
        });
    }
    std::fs::remove_dir_all(&runs).context("the bench's runs cannot be removed")?;
    Ok(claims)
}

fn decode() -> anyhow::Result<Vec<Claim>> {
    let json = bench_json("jitterscope-trace", "decode")?;
    let rate = number(&json, "events_per_second")?;
    Ok(vec![Claim {
        what: "events decoded a second on one core".into(),
        measured: format!("{:.1} M", rate / 1e6),
        target: ">= 5 M".into(),
        holds: rate >= 5e6,
    }])
}

fn series() -> anyhow::Result<Vec<Claim>> {
    let json = bench_json("jitterscope-record", "series")?;
    let ratio = number(&json, "samples_ratio")?;
    let (stolen, bare) = (number(&json, "stolen_share")?, number(&json, "bare_stolen_share")?);
    let spread = number(&json, "bare_stolen_spread")?;
    Ok(vec![
        Claim {
            what: format!("samples/s with {:.0} outputs, of those with none", number(&json, "outputs")?),
            measured: format!("{ratio:.3}"),
            target: ">= 0.97".into(),
            holds: ratio >= 0.97,
        },
        Claim {
            what: format!("stolen time with outputs, {:.3} % with none", bare * 100.0),
            measured: format!("{:.3} %", stolen * 100.0),
            target: format!("<= {:.3} %", (bare + spread) * 100.0),
            holds: stolen <= bare + spread,
        },
    ])
}
