//! The path of a record from a stored page to the rows of a new run, on one thread and without a kernel:
//! `cargo bench -p jitterscope-recording --bench path -- RUN`. RUN is a run of a spinning probe whose whole trace was
//! kept. Does what a drain does with its pages, gaps and rows, except reading names from `/proc`. Prints one line of
//! JSON. The work is the same each time, so instructions can be counted, too.

use jitterscope_analyze::{RowSummer, RowsOf};
use jitterscope_model::{Attribution, RawPage, Row, RunFacts, Sink, Stall, Ticks};
use jitterscope_recording::replay;
use jitterscope_store::{RunReader, RunWriter, StoreSink};
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

const BATCH: usize = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let path: PathBuf = std::env::args_os()
        .skip(1)
        .find(|argument| argument != "--bench")
        .ok_or("give the folder of a run")?
        .into();
    let run = RunReader::open(&path)?;
    let manifest = run.manifest().clone();
    let folder = tempfile::tempdir()?;
    let writer = RunWriter::create(folder.path(), "PATH", manifest.clock_start.realtime_ns)?;
    let mut store = StoreSink::new(writer);
    let mut sums = RowSummer::stored(RowsOf::run(&manifest));
    let facts = RunFacts {
        id: store.id().to_owned(),
        label: "PATH".into(),
        ..RunFacts::of(&manifest)
    };
    store.begin(&facts)?;
    let pages = run.trace_pages(Ticks(0), Ticks(u64::MAX))?;
    let began = Instant::now();
    for page in &pages {
        let (first, last) = (page.first, page.last);
        store.rows(&[Row::Page(RawPage {
            role: page.role,
            cpu: page.cpu,
            first,
            last,
            bytes: &page.bytes,
        })])?;
    }
    let mut waiting: Vec<(Stall, Option<Attribution>)> = Vec::with_capacity(BATCH);
    let (mut stalls, mut parts) = (0u64, 0u64);
    let mut flush = |waiting: &mut Vec<(Stall, Option<Attribution>)>| {
        let rows: Vec<Row<'_>> = waiting
            .iter()
            .map(|(stall, own)| Row::Stall(stall, own.as_ref()))
            .collect();
        let taken = store.rows(&rows).and_then(|()| sums.rows(&rows));
        drop(rows);
        waiting.clear();
        taken
    };
    let mut failed = None;
    replay(&run, &mut |stall, attribution| {
        stalls += 1;
        parts += attribution.as_ref().map_or(0, |of| of.parts.len() as u64);
        waiting.push((*stall, attribution));
        if waiting.len() >= BATCH {
            failed = failed.take().or(flush(&mut waiting).err());
        }
    })?;
    failed = failed.take().or(flush(&mut waiting).err());
    if let Some(error) = failed {
        return Err(error.into());
    }
    let took = began.elapsed().as_nanos() as f64;
    let events = manifest.events_in_gaps.events;
    println!(
        "{}",
        serde_json::json!({
            "events": events,
            "stalls": stalls,
            "parts": parts,
            "ns_per_event": took / events.max(1) as f64,
            "ns_per_stall": took / stalls.max(1) as f64,
        })
    );
    Ok(())
}
