//! The cost of storing a stall, and the memory that it takes: `cargo bench -p jitterscope-store --bench rows --
//! [STALLS] [no-log]`. With `no-log`, without the log that a killed recorder's rows are taken from. Writes the stalls of a recorded run repeatedly, as a day-long recording would, and samples its own
//! memory. Then writes a tenth as many stalls, each with a culprit of its own. Prints one line of JSON.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{manifest, writer};
use jitterscope_model::{Attribution, Evidence, Nanos, Part, Stall, StallId, Subject, Task, Ticks};
use jitterscope_platform::{peak_rss_bytes, resident_bytes};
use jitterscope_store::RunReader;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use std::error::Error;
use std::path::Path;

#[global_allocator]
static ALLOCATOR: jitterscope_platform::Allocator = jitterscope_platform::Allocator;

/// The default number of stalls: an hour at 1,400 a second.
const STALLS: u64 = 1_400 * 3_600;
/// The number of stalls of a short run.
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
    let has_log = !std::env::args().any(|arg| arg == "no-log");
    let runs = tempfile::tempdir()?;
    jitterscope_platform::keep_freed_memory();
    let before = resident_bytes();
    let mut writer = writer(runs.path());
    if !has_log {
        writer.give_up_log();
    }
    let (begun, mut short) = (cpu_time(), 0);
    for number in 0..stalls {
        let at = (number % pattern.len() as u64) as usize;
        let (stall, attribution) = &mut pattern[at];
        stall.id = StallId(number);
        attribution.stall = StallId(number);
        writer.stall(stall)?;
        writer.attribution(attribution)?;
        if number.is_multiple_of(70) {
            writer.tick()?;
        }
        (stall.start, stall.end) = (stall.start + length, stall.end + length);
        if number == SHORT {
            short = peak_rss_bytes();
        }
    }
    let (took, long) = (cpu_time() - begun, peak_rss_bytes());
    let hidden = std::fs::read_dir(runs.path())?
        .next()
        .ok_or("no folder")??;
    let log = std::fs::metadata(hidden.path().join("rows.log")).map_or(0, |of| of.len());
    let path = writer.finish(manifest())?;
    let size = |file: &str| std::fs::metadata(path.join(file)).map(|found| found.len() as f64);
    let with_footer = peak_rss_bytes();
    let renamed = stalls / 10;
    let mut writer = self::writer(runs.path());
    let begun = cpu_time();
    for number in 0..renamed {
        let (stall, attribution) = &mut pattern[0];
        (stall.id, attribution.stall) = (StallId(number), StallId(number));
        let task = Task {
            tid: Some(7),
            tgid: Some(7),
            comm: format!("name {number}").into(),
            ..Task::default()
        };
        let part = Part::inside(
            Subject::Thread(task),
            Nanos(number),
            Evidence::SwitchRecords,
        );
        attribution.parts = vec![part];
        writer.stall(stall)?;
        writer.attribution(attribution)?;
    }
    let took_renamed = cpu_time() - begun;
    let renamed_peak = peak_rss_bytes();
    let of_renamed = writer.finish(manifest())?;
    let culprits = std::fs::metadata(of_renamed.join("culprits.parquet"))?.len();
    println!(
        "{}",
        json!({
            "stalls": stalls,
            "log_bytes": log,
            "ns_per_stall": took as f64 / stalls as f64,
            "stalls_bytes_per_stall": size("stalls.parquet")? / stalls as f64,
            "parts_bytes_per_stall": size("parts.parquet")? / stalls as f64,
            "culprits_bytes": size("culprits.parquet")?,
            "short_peak_bytes": short.saturating_sub(before),
            "long_peak_bytes": long.saturating_sub(before),
            "peak_bytes_with_footer": with_footer.saturating_sub(before),
            "renamed_ns_per_stall": took_renamed as f64 / renamed as f64,
            "renamed_bytes_per_culprit": culprits as f64 / renamed as f64,
            "renamed_peak_bytes": renamed_peak.saturating_sub(before),
        })
    );
    Ok(())
}
