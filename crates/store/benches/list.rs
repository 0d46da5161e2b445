//! What a stored run costs whoever lists runs or looks one up by its label: beside runs of schema version 1,
//! whose manifest is one file. Prints JSON.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{manifest, writer};
use jitterscope_model::{CpuId, Nanos, RunManifest, TickRate, Ticks, WakeupResult};
use jitterscope_store::list;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Runs in each folder.
const RUNS: usize = 1_000;
/// How often each is listed; the fastest counts.
const TURNS: usize = 7;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let (old, new) = (dir.path().join("1"), dir.path().join("2"));
    let manifest = large();
    let text = version_1(&manifest)?;
    let first = writer(&new).finish(manifest)?;
    fs::create_dir(&old)?;
    for run in 0..RUNS {
        // The head and the details: nothing else is looked at.
        let (to, from) = (new.join(format!("run-{run}")), &first);
        fs::create_dir(&to)?;
        for file in ["manifest.json", "details.json"] {
            fs::copy(from.join(file), to.join(file))?;
        }
        let to = old.join(format!("run-{run}"));
        fs::create_dir(&to)?;
        fs::write(to.join("manifest.json"), &text)?;
    }
    fs::remove_dir_all(&first)?;
    let (mut before, mut after) = (f64::MAX, f64::MAX);
    for _ in 0..TURNS {
        before = before.min(per_run(&old)?);
        after = after.min(per_run(&new)?);
    }
    println!(
        "{}",
        serde_json::json!({
            "runs": RUNS,
            "manifest_bytes": text.len(),
            "head_bytes": fs::metadata(new.join("run-0/manifest.json"))?.len(),
            "whole_ms_per_run": before,
            "head_ms_per_run": after,
            "ratio": before / after,
        })
    );
    Ok(())
}

/// Milliseconds for each run of a list.
fn per_run(runs: &Path) -> Result<f64, Box<dyn std::error::Error>> {
    let start = Instant::now();
    let (found, problems) = list(runs)?;
    let took = start.elapsed();
    if found.len() != RUNS || !problems.is_empty() {
        return Err(format!("{} runs, {problems:?}", found.len()).into());
    }
    Ok(took.as_secs_f64() * 1e3 / RUNS as f64)
}

/// Of the size that a run of ten seconds on a busy CPU has.
fn large() -> RunManifest {
    let wakeup = WakeupResult {
        cpu: CpuId(1),
        ..WakeupResult::default()
    };
    let mut result = wakeup.as_probe_result(Nanos(300), Ticks(2_000), TickRate::NANOSECONDS);
    result.below = (0..1_800).map(|n| (n, u64::from(n) * 1_000)).collect();
    result.above = (0..500).map(|n| (n * 1_000, 3)).collect();
    RunManifest {
        results: vec![result],
        ..manifest()
    }
}

fn version_1(manifest: &RunManifest) -> Result<Vec<u8>, serde_json::Error> {
    let mut value = serde_json::to_value(manifest)?;
    value["schema_version"] = 1.into();
    value["audit"] = serde_json::json!({});
    serde_json::to_vec_pretty(&value)
}
