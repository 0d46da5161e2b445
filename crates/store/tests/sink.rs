//! The store as a sink of what a recording says.

mod common;

use common::{manifest, stall};
use jitterscope_model::*;
use jitterscope_store::{RunReader, RunWriter, StoreSink};

#[test]
fn rows_of_every_sort_are_stored_under_the_id_that_was_told() {
    let runs = tempfile::tempdir().unwrap();
    let writer = RunWriter::create(runs.path(), "L", 1).unwrap();
    let id = writer.id().to_owned();
    assert_eq!(id.len(), 6);
    let mut sink = StoreSink::new(writer);
    sink.begin(&RunFacts { id: id.clone(), ..RunFacts::of(&manifest()) }).unwrap();
    let attribution = Attribution { stall: StallId(1), parts: Vec::new() };
    let (start, end) = (Ticks(1), Ticks(2));
    let row = IntervalRow { cpu: CpuId(1), start, end, count: 1, max: Nanos(1), stolen: Nanos(1) };
    let lengths = hdrhistogram::Histogram::new(3).unwrap();
    let page =
        RawPage { role: TraceRole::Local, cpu: CpuId(1), first: Ticks(1), last: Ticks(2), bytes: &[1; 64] };
    let (first, second) = (stall(1, 1_000, 10, "x"), stall(2, 2_000, 10, "x"));
    let rows = [
        Row::Stall(&first, Some(&attribution)),
        Row::Stall(&second, None),
        Row::Interval(&row, &lengths),
        Row::Page(page),
    ];
    sink.rows(&rows).unwrap();
    let folder = sink.finish(manifest()).unwrap();
    let run = RunReader::open(&folder).unwrap();
    assert_eq!(run.manifest().id.to_string(), id);
    let stalls: Vec<Stall> = run.stalls().unwrap().map(Result::unwrap).collect();
    assert_eq!(stalls, [first, second]);
    assert_eq!(run.intervals().unwrap().map(Result::unwrap).collect::<Vec<_>>(), [row]);
    assert_eq!(run.trace_pages(Ticks(0), Ticks(9)).unwrap().len(), 1);
}

#[test]
fn a_folder_that_takes_no_runs_is_named_once_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a file");
    std::fs::write(&file, "").unwrap();
    let why = RunWriter::create(&file, "L", 1).err().unwrap().to_string();
    assert_eq!(why.matches(&*file.to_string_lossy()).count(), 1, "{why}");
    assert!(why.contains("directory"), "{why}");
}
