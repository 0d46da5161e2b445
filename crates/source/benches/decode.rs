//! Throughput of decoding pages to events: `cargo bench -p jitterscope-source --bench decode`. Decodes the recorded
//! fixture repeatedly on one thread and prints one line of JSON.

#[path = "../tests/support/fixture.rs"]
mod fixture;

use jitterscope_source::Decoder;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Long enough to outlast a disturbance, short enough for CI.
const LENGTH: Duration = Duration::from_secs(2);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (context, pages) = fixture::read(&fixture::folder());
    let mut decoder = Decoder::new(&context)?;
    let mut bytes = 0u64;
    let start = Instant::now();
    while start.elapsed() < LENGTH {
        for page in &pages {
            bytes += page.bytes.len() as u64;
            decoder.page(page.cpu, &page.bytes, |event| {
                black_box(&event);
            })?;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let events = decoder.counts().events;
    println!(
        "{}",
        serde_json::json!({
            "events": events,
            "seconds": seconds,
            "events_per_second": events as f64 / seconds,
            "bytes": bytes,
        })
    );
    Ok(())
}
