//! What a stall costs on its way into the tables, and what memory that takes however many there are:
//! `cargo bench -p jitterscope-store --bench rows -- [STALLS]`. Writes the stalls of a recorded run over and over,
//! as a day of them would come, and looks at its own memory as it goes. Prints one line of JSON.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{manifest, writer};
use jitterscope_model::{Attribution, Stall, StallId, Ticks};
use jitterscope_platform::{peak_rss_bytes, resident_bytes};
use jitterscope_store::RunReader;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use std::error::Error;
use std::path::Path;

/// Stalls unless said otherwise: an hour at 1,400 a second.
const STALLS: u64 = 1_400 * 3_600;
/// How many of them are a short run.
const SHORT: u64 = 1_400 * 5;

/// CPU time of this thread, nanoseconds.
fn cpu_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn main() -> Result<(), Box<dyn Error>> {
    let stalls = std::env::args()
        .skip(1)
        .find_map(|arg| arg.parse().ok())
        .unwrap_or(STALLS);
    let pattern = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recording/tests/fixtures/spin");
    let pattern = RunReader::open(&pattern)?;
    let pattern: Result<Vec<(Stall, Attribution)>, _> = pattern
        .stalls()?
        .zip(pattern.attributions()?)
        .map(|(stall, of)| Ok((stall?, of?)))
        .collect();
    let mut pattern = pattern.map_err(|error: jitterscope_store::StoreError| error)?;
    let first = pattern.first().ok_or("the run has no stalls")?.0.start;
    let length = pattern
        .last()
        .map_or(Ticks(0), |(stall, _)| stall.end)
        .since(first);
    let runs = tempfile::tempdir()?;
    jitterscope_platform::keep_freed_memory();
    let before = resident_bytes();
    let mut writer = writer(runs.path());
    let (begun, mut short) = (cpu_time(), 0);
    for number in 0..stalls {
        let at = (number % pattern.len() as u64) as usize;
        let (stall, attribution) = &mut pattern[at];
        stall.id = StallId(number);
        attribution.stall = StallId(number);
        writer.stall(stall)?;
        writer.attribution(attribution)?;
        (stall.start, stall.end) = (stall.start + length, stall.end + length);
        if number == SHORT {
            short = peak_rss_bytes();
        }
    }
    let (took, long) = (cpu_time() - begun, peak_rss_bytes());
    let path = writer.finish(manifest())?;
    let size = |file: &str| std::fs::metadata(path.join(file)).map(|found| found.len() as f64);
    println!(
        "{}",
        json!({
            "stalls": stalls,
            "ns_per_stall": took as f64 / stalls as f64,
            "gaps_bytes_per_stall": size("gaps.parquet")? / stalls as f64,
            "attributions_bytes_per_stall": size("attributions.parquet")? / stalls as f64,
            "short_peak_bytes": short.saturating_sub(before),
            "long_peak_bytes": long.saturating_sub(before),
            "peak_bytes_with_footer": peak_rss_bytes().saturating_sub(before),
        })
    );
    Ok(())
}
