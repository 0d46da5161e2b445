//! The fuzz targets, a while each.

use crate::shell;
use anyhow::bail;

/// Runs every target of `fuzz/`.
pub fn run(seconds: u32) -> anyhow::Result<()> {
    let list = shell::output("cargo", &["+nightly", "fuzz", "list"])?;
    let targets: Vec<&str> = list.lines().filter(|line| !line.trim().is_empty()).collect();
    if targets.is_empty() {
        bail!("no fuzz targets found");
    }
    let limit = format!("-max_total_time={seconds}");
    for target in targets {
        shell::run("cargo", &["+nightly", "fuzz", "run", target, "--", &limit])?;
    }
    Ok(())
}
