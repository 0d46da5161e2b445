//! Untrusted runs: a reader refuses, with the reason, what would exhaust the memory.

use crate::bombs::BOMBS;
use crate::common;

use common::{EPOCH, manifest, stall};
use jitterscope_model::{StallId, Ticks};
use jitterscope_platform::allocated;
use jitterscope_store::{RunReader, RunWriter, StoreError, list};
use std::path::{Path, PathBuf};

#[global_allocator]
static ALLOCATOR: jitterscope_platform::Allocator = jitterscope_platform::Allocator;

fn run(runs: &Path) -> PathBuf {
    let mut run = RunWriter::create(runs, "L", EPOCH).unwrap();
    let clock = manifest().clock_start;
    run.begin(clock, manifest().rate).unwrap();
    run.stall(&stall(0, 1_000, 500, "js-spin/1")).unwrap();
    run.finish(manifest()).unwrap()
}

/// Reads a whole run. Returns the outcome and the peak of the memory taken, bytes.
fn read(run: &Path) -> (Result<(), StoreError>, isize) {
    let before = allocated();
    let mut most = 0;
    let mut look = || most = most.max(allocated() - before);
    let mut all = || {
        let run = RunReader::open(run)?;
        for row in run.stalls()? {
            row?;
            look();
        }
        for row in run.attributions()? {
            row?;
            look();
        }
        run.stall(StallId(0))?;
        for row in run.intervals()? {
            row?;
        }
        for row in run.interval_histograms()? {
            row?;
            look();
        }
        run.machine()?;
        run.summary::<serde_json::Value>()?;
        run.trace_context::<serde_json::Value>()?;
        run.trace_pages(Ticks(0), Ticks(u64::MAX)).map(drop)
    };
    let result = all();
    (result, most)
}

#[test]
fn what_would_fill_the_memory_is_refused_with_the_reason() {
    for bomb in BOMBS {
        let dir = tempfile::tempdir().unwrap();
        let run = run(dir.path());
        (bomb.plant)(&run);
        let (result, most) = read(&run);
        match (result, bomb.said) {
            (Ok(()), "") => {}
            (Err(error), said) if !said.is_empty() => {
                let text = error.to_string();
                assert!(text.contains(said), "{}: {text}", bomb.name);
            }
            (result, _) => panic!("{}: {result:?}", bomb.name),
        }
        assert!(most < 24 << 20, "{}: {most} bytes", bomb.name);
        list(dir.path()).unwrap();
    }
    more_is_allowed_to_who_is_trusted();
}

/// The bound is global: no other test of this program may run at the same time.
fn more_is_allowed_to_who_is_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let run = run(dir.path());
    let text = format!("[\"{}\"]", "x".repeat(40 << 20));
    let folder = run.join("trace");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("context.json"), text).unwrap();
    let read = || RunReader::open(&run)?.trace_context::<Vec<String>>();
    let error = read().unwrap_err();
    assert!(
        matches!(error, StoreError::Memory { mib: 8, .. }),
        "{error}"
    );
    jitterscope_store::allow_memory(512 << 20);
    let found = read().unwrap().unwrap();
    jitterscope_store::allow_memory(32 << 20);
    assert_eq!(found[0].len(), 40 << 20);
}
