//! The store as a sink of a recording.

use crate::common;

use common::{manifest, stall};
use jitterscope_model::*;
use jitterscope_store::{Room, RunReader, RunWriter, StoreSink, TracePiece, list};

#[test]
fn rows_of_every_kind_are_stored_under_the_given_id() {
    let runs = tempfile::tempdir().unwrap();
    let writer = RunWriter::create(runs.path(), "L", 1).unwrap();
    let id = writer.id().to_owned();
    assert_eq!(id.len(), 6);
    let mut sink = StoreSink::new(writer);
    sink.begin(&RunFacts {
        id: id.clone(),
        ..RunFacts::of(&manifest())
    })
    .unwrap();
    let attribution = Attribution {
        stall: StallId(1),
        parts: Vec::new(),
    };
    let (start, end) = (Ticks(1), Ticks(2));
    let row = IntervalRow {
        cpu: CpuId(1),
        start,
        end,
        count: 1,
        max: Nanos(1),
        stolen: Nanos(1),
    };
    let lengths = hdrhistogram::Histogram::new(3).unwrap();
    let page = RawPage {
        role: TraceRole::Local,
        cpu: CpuId(1),
        first: Ticks(1),
        last: Ticks(2),
        bytes: &[1; 64],
    };
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
    assert_eq!(
        run.intervals()
            .unwrap()
            .map(Result::unwrap)
            .collect::<Vec<_>>(),
        [row]
    );
    assert_eq!(run.trace_pages(Ticks(0), Ticks(9)).unwrap().len(), 1);
}

fn sink(runs: &std::path::Path) -> StoreSink {
    let mut sink = StoreSink::new(RunWriter::create(runs, "L", 1).unwrap());
    sink.begin(&RunFacts::of(&manifest())).unwrap();
    sink
}

#[test]
fn what_was_stored_is_counted_as_it_goes_and_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut sink = sink(dir.path());
    assert!(sink.may_refuse(), "the disk may be full");
    let attribution = Attribution {
        stall: StallId(0),
        parts: Vec::new(),
    };
    assert_eq!(sink.tick().unwrap(), 0);
    for n in 0..5 {
        let stall = stall(n, 1_000 * n, 10, "x");
        let row = Row::Stall(&stall, (n % 2 == 0).then_some(&attribution));
        assert!(sink.takes(&row));
        sink.rows(&[row]).unwrap();
        assert_eq!(sink.tick().unwrap(), n + 1);
    }
    let id = sink.id().to_owned();
    assert_eq!(sink.end(&manifest()).unwrap(), Delivery::of(5));
    assert_eq!(list(dir.path()).unwrap().0[0].head.id, id);
    // The sink is closed.
    assert!(sink.end(&manifest()).is_err());
}

#[test]
fn the_first_error_is_kept_for_the_end_and_nothing_is_stored_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut sink = sink(dir.path());
    sink.summary(&[1]);
    assert!(!sink.is_stuck());
    // A summary exists already.
    sink.summary(&[2]);
    assert!(sink.is_stuck());
    assert_eq!(sink.room(), Room::Ample, "it is not for want of room");
    sink.rows(&[Row::Stall(&stall(0, 1, 1, "x"), None)])
        .unwrap();
    assert_eq!(sink.tick().unwrap(), 0);
    let error = sink.finish(manifest()).unwrap_err().to_string();
    assert!(error.contains("summary.json"), "{error}");
    drop(sink);
    assert!(list(dir.path()).unwrap().0.is_empty());
}

#[test]
fn rows_before_the_beginning_are_not_stored_and_the_trace_is() {
    let dir = tempfile::tempdir().unwrap();
    let mut sink = StoreSink::new(RunWriter::create(dir.path(), "L", 1).unwrap());
    let page = RawPage {
        role: TraceRole::Local,
        cpu: CpuId(1),
        first: Ticks(1),
        last: Ticks(2),
        bytes: &[1; 64],
    };
    let early = stall(0, 1, 1, "x");
    sink.rows(&[
        Row::Stall(&early, None),
        Row::Page(page),
        Row::Turn(&DrainTurn::default()),
    ])
    .unwrap();
    sink.begin(&RunFacts::of(&manifest())).unwrap();
    let late = stall(1, 2, 1, "x");
    sink.rows(&[Row::Stall(&late, None)]).unwrap();
    assert_eq!(sink.room(), Room::Ample);
    let run = RunReader::open(&sink.finish(manifest()).unwrap()).unwrap();
    assert_eq!(
        run.stalls()
            .unwrap()
            .map(Result::unwrap)
            .collect::<Vec<_>>(),
        [late]
    );
    let pieces: Vec<TracePiece> = run.trace_pieces().unwrap().map(Result::unwrap).collect();
    assert!(
        matches!(
            pieces.as_slice(),
            [TracePiece::Page(_), TracePiece::Turn(_)]
        ),
        "{pieces:?}"
    );
}

#[test]
fn facts_given_beside_the_rows_are_in_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let mut sink = sink(dir.path());
    let mut machine = MachineState::default();
    let release = [MachineEntry::new("6.1")];
    machine.settings.put("kernel.release", release);
    sink.machine(&machine);
    sink.summary(&["sums"]);
    sink.rows(&[Row::Context(br#"["old"]"#), Row::Context(br#"["symbols"]"#)])
        .unwrap();
    let (mut journal, name) = sink.make_journal().unwrap();
    std::io::Write::write_all(&mut journal, b"records").unwrap();
    let lengths = hdrhistogram::Histogram::new(3).unwrap();
    sink.rows(&[Row::Whole(
        "consumer",
        (Ticks(1_000), Ticks(2_000)),
        &lengths,
    )])
    .unwrap();
    let folder = sink.finish(manifest()).unwrap();
    assert!(sink.make_journal().is_err(), "it is closed");
    let run = RunReader::open(&folder).unwrap();
    assert_eq!(run.machine().unwrap(), Some(machine));
    assert_eq!(
        run.summary::<Vec<String>>().unwrap(),
        Some(vec!["sums".into()])
    );
    assert_eq!(
        run.trace_context::<Vec<String>>().unwrap(),
        Some(vec!["symbols".into()])
    );
    assert_eq!(std::fs::read(folder.join(name)).unwrap(), b"records");
    let tags: Vec<String> = run
        .interval_histograms()
        .unwrap()
        .map(|found| found.unwrap().tag)
        .collect();
    assert_eq!(tags, ["consumer"]);
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
