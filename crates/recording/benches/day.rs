//! The memory of a recorder over a long recording:
//! `cargo bench -p jitterscope-recording --bench day -- [HOURS [RUNS]]`. With RUNS, an absolute path to a folder of
//! runs, the run is kept, to measure how long its report takes.
//!
//! Decodes the pages of a recorded run repeatedly, each time shifted by the run's length, until HOURS hours of them
//! have passed, and attributes, stores and sums up its stalls. Samples its own memory meanwhile. Prints one line of
//! JSON.

use hdrhistogram::Histogram;
use jitterscope_analyze::{RowSummer, RowsOf};
use jitterscope_attribute::{Attributor, AttributorSettings, EdgeCosts, OutsideHints};
use jitterscope_model::{
    Attribution, Gap, IntervalRow, KernelEvent, Nanos, Row, RunFacts, Sink, Stall, StallId, Ticks,
};
use jitterscope_platform::{keep_freed_memory, peak_rss_bytes, resident_bytes, thread_usage};
use jitterscope_recording::StoredNames;
use jitterscope_source::Decoder;
use jitterscope_store::{RunReader, RunWriter, StoreSink, TraceRole};
use serde_json::json;
use std::error::Error;
use std::path::{Path, PathBuf};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: jitterscope_platform::Allocator = jitterscope_platform::Allocator;

/// Stalls a second on a busy CPU: the run's stalls are replayed at this rate.
const STALLS_PER_SECOND: u64 = 1_400;
const HOURS: u64 = 1;
/// Length of a short run, seconds.
const SHORT: u64 = 10;

/// A record of the run, and which side wrote it.
struct Recorded {
    event: KernelEvent,
    sender: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let hours = std::env::args()
        .skip(1)
        .find_map(|arg| arg.parse().ok())
        .unwrap_or(HOURS);
    let wanted = hours * 3600 * STALLS_PER_SECOND;
    let run = RunReader::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/spin"))?;
    let manifest = run.manifest().clone();
    let context = run.trace_context()?.ok_or("the run has no trace")?;
    let names = StoredNames::new(&context);
    let mut records = Vec::new();
    let mut decoder = Decoder::new(&context)?;
    for page in run.trace_pages(Ticks(0), Ticks(u64::MAX))? {
        let sender = page.role == TraceRole::Senders;
        let _ = decoder.page(page.cpu, &page.bytes, |event| {
            records.push(Recorded { event, sender })
        });
    }
    records.sort_by_key(|recorded| recorded.event.time);
    let stalls: Vec<Stall> = run.stalls()?.collect::<Result<_, _>>()?;
    let (first, last) = (
        stalls.first().ok_or("the run has no stalls")?,
        stalls.last().ok_or("no stalls")?,
    );
    let begin = records
        .first()
        .map_or(first.start, |one| one.event.time.min(first.start));
    let end = records
        .last()
        .map_or(last.end, |one| one.event.time.max(last.end));
    let length = Ticks(end.since(begin).0 + 1);
    drop(run);
    let kept = std::env::args_os()
        .skip(1)
        .map(PathBuf::from)
        .find(|arg| arg.is_absolute());
    let dropped = tempfile::tempdir()?;
    let runs = kept.as_deref().unwrap_or(dropped.path());
    keep_freed_memory();
    let before = resident_bytes();
    let mut attributor = Attributor::new(AttributorSettings {
        rate: manifest.rate,
        virtual_machine: manifest.host.hypervisor.is_some(),
        measured: manifest.results.len(),
    });
    attributor.set_costs(EdgeCosts::from_rows(&manifest.edge_costs));
    attributor.measure(begin, Ticks(u64::MAX));
    let mut store = StoreSink::new(RunWriter::create(
        runs,
        "DAY",
        manifest.clock_start.realtime_ns,
    )?);
    store.begin(&RunFacts {
        id: store.id().to_owned(),
        label: "DAY".into(),
        ..RunFacts::of(&manifest)
    })?;
    let mut sums = RowSummer::stored(RowsOf {
        attributed: true,
        ..RowsOf::run(&manifest)
    });
    let mut lengths: Histogram<u64> = Histogram::new_with_bounds(1, 3_600_000_000_000, 3)?;
    let (mut done, mut round, mut short, mut batch) =
        (0u64, 0u64, 0, Vec::<(Stall, Attribution)>::new());
    let begun = thread_usage().cpu_time;
    while done < wanted {
        let shift = Ticks(length.0 * round);
        let mut coming = records.iter().peekable();
        for stall in &stalls {
            while let Some(recorded) = coming.next_if(|one| one.event.time <= stall.end) {
                take(&mut attributor, recorded, shift);
            }
            let stall = Stall {
                id: StallId(done),
                start: stall.start + shift,
                end: stall.end + shift,
                ..*stall
            };
            attributor.announce(
                stall.cpu,
                Gap {
                    start: stall.start,
                    length: stall.length(),
                },
            );
            let attribution = attributor.attribute(&stall, &OutsideHints::default(), &names);
            lengths.saturating_record(manifest.rate.nanos(stall.length()).0);
            batch.push((stall, attribution));
            done += 1;
        }
        coming.for_each(|recorded| take(&mut attributor, recorded, shift));
        let row = IntervalRow {
            cpu: first.cpu,
            start: begin + shift,
            end: begin + shift + length,
            count: stalls.len() as u64,
            max: Nanos(lengths.max()),
            stolen: Nanos((lengths.mean() * lengths.len() as f64) as u64),
        };
        let rows = batch
            .iter()
            .map(|(stall, own)| Row::Stall(stall, Some(own)));
        let rows: Vec<Row<'_>> = rows.chain([Row::Interval(&row, &lengths)]).collect();
        store.rows(&rows)?;
        sums.rows(&rows)?;
        store.tick()?;
        batch.clear();
        lengths.reset();
        round += 1;
        if short == 0 && done >= SHORT * STALLS_PER_SECOND {
            short = peak_rss_bytes();
        }
    }
    let took = thread_usage().cpu_time.saturating_sub(begun);
    let long = peak_rss_bytes();
    let mut clock_end = manifest.clock_start;
    clock_end.ticks = end + Ticks(length.0 * round);
    let manifest = jitterscope_model::RunManifest {
        clock_end,
        attributed: true,
        ..manifest
    };
    store.summary(&sums.finish(&manifest, None));
    store.finish(manifest)?;
    println!(
        "{}",
        json!({
            "hours": hours,
            "stalls": done,
            "events": records.len() as u64 * round,
            "ns_per_stall": took.0 as f64 / done as f64,
            "short_peak_bytes": short.saturating_sub(before),
            "long_peak_bytes": long.saturating_sub(before),
            "peak_bytes_at_the_end": peak_rss_bytes().saturating_sub(before),
        })
    );
    Ok(())
}

fn take(attributor: &mut Attributor, recorded: &Recorded, shift: Ticks) {
    let mut event = recorded.event.clone();
    event.time = event.time + shift;
    if recorded.sender {
        attributor.sender_event(&event)
    } else {
        attributor.event(&event)
    }
}
