//! Synthetic records that try to fill a recorder's memory, which must not grow over time.

use crate::bench::bench_json;
use anyhow::{Context, ensure};

/// Maximum growth in bytes from the first quarter of the time, in which tables of names and senders fill, to the second
/// half.
const GROWTH: u64 = 2 << 20;

/// Runs floods for this many minutes; fails if memory grew.
pub fn run(minutes: u64) -> anyhow::Result<()> {
    let seconds = (minutes * 60).to_string();
    let found = bench_json("jitterscope-recording", "flood", &[&seconds])?;
    let parts = found["peak_bytes_by_twentieth"]
        .as_array()
        .context("the bench told nothing of its memory")?;
    let bytes: Vec<u64> = parts.iter().filter_map(serde_json::Value::as_u64).collect();
    let greatest = |of: &[u64]| of.iter().copied().max().unwrap_or_default();
    let (first, later) = (
        greatest(&bytes[..bytes.len() / 4]),
        greatest(&bytes[bytes.len() / 2..]),
    );
    let mib = |bytes: u64| bytes as f64 / f64::from(1u32 << 20);
    eprintln!(
        "{minutes} minutes of floods: {} records, {} stalls, {} rounds of all sorts; {:.1} MiB in the first quarter, \
         {:.1} MiB in the second half",
        found["events"],
        found["stalls"],
        found["rounds"],
        mib(first),
        mib(later)
    );
    ensure!(
        later <= first + GROWTH,
        "memory grows with the length of floods: {bytes:?}"
    );
    Ok(())
}
