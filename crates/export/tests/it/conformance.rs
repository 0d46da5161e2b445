//! All sinks of a recording keep the same promises: every exporter, the store and a summary get the same rows, in
//! batches of any size, and each counts exactly the rows that it says it takes.

use crate::common;

use common::stored_rows::{StoredRows, feed};
use jitterscope_analyze::SummaryBuilder;
use jitterscope_export::{Destination, Pace, export_run};
use jitterscope_model::{
    Attribution, Delivery, Row, RunFacts, RunManifest, Sink, SinkError, Stall,
};
use jitterscope_store::{RunReader, RunWriter, StoreSink};
use std::fs;
use std::path::Path;

/// Files with options; `formats.rs` tests every format without options.
const KINDS: [(&str, &str); 7] = [
    ("csv", "?rows=stalls"),
    ("csv", "?rows=intervals"),
    ("csv", "?rows=series"),
    ("json", ""),
    ("hlog", ""),
    ("hgrm", ""),
    ("hgrm", "?cpu=1"),
];

fn target(folder: &Path, n: usize, (scheme, options): (&str, &str)) -> Destination {
    format!("{scheme}://{}/{n}{options}", folder.display())
        .parse()
        .unwrap()
}

#[test]
fn exporters_write_the_same_live_stored_and_in_any_batches() {
    let dir = tempfile::tempdir().unwrap();
    let run = common::run(dir.path());
    let rows = StoredRows::of(&run);
    let rows = rows.rows();
    let stored = dir.path().join("stored");
    fs::create_dir(&stored).unwrap();
    let targets: Vec<Destination> = KINDS
        .into_iter()
        .enumerate()
        .map(|(n, kind)| target(&stored, n, kind))
        .collect();
    let delivered = export_run(&run, &targets).unwrap();
    for at_once in [1, 7, rows.len()] {
        let folder = dir.path().join(at_once.to_string());
        fs::create_dir(&folder).unwrap();
        for (n, kind) in KINDS.into_iter().enumerate() {
            let mut sink = target(&folder, n, kind).open(Pace::Live).unwrap();
            let delivery = feed(sink.as_mut(), &rows, at_once, run.manifest()).unwrap();
            assert_eq!(delivery, delivered[n], "{kind:?}");
            let read = |folder: &Path| fs::read_to_string(folder.join(n.to_string())).unwrap();
            assert!(read(&folder).lines().count() > 5, "{kind:?}");
            assert_eq!(
                read(&folder),
                read(&stored),
                "{kind:?} in batches of {at_once}"
            );
        }
    }
}

#[test]
fn the_store_gives_back_what_it_was_given() {
    let dir = tempfile::tempdir().unwrap();
    let run = common::run(dir.path());
    let stored = StoredRows::of(&run);
    for at_once in [1, 1000] {
        let runs = dir.path().join(format!("again-{at_once}"));
        let mut sink = StoreSink::new(RunWriter::create(&runs, "golden", common::EPOCH).unwrap());
        let facts = RunFacts::of(run.manifest());
        sink.begin(&facts).unwrap();
        stored
            .rows()
            .chunks(at_once)
            .for_each(|batch| sink.rows(batch).unwrap());
        let path = sink.finish(run.manifest().clone()).unwrap();
        let again = RunReader::open(&path).unwrap();
        let stalls: Vec<Stall> = again.stalls().unwrap().map(Result::unwrap).collect();
        let attributions: Vec<Attribution> =
            again.attributions().unwrap().map(Result::unwrap).collect();
        assert!(
            stalls
                .iter()
                .eq(stored.stalls.iter().map(|(stall, _)| stall))
        );
        assert!(
            attributions
                .iter()
                .eq(stored.stalls.iter().map(|(_, own)| own))
        );
        let (before, after) = (StoredRows::of(&run), StoredRows::of(&again));
        assert_eq!(before.intervals, after.intervals);
    }
}

#[test]
fn a_summary_takes_rows_as_it_takes_tables() {
    let dir = tempfile::tempdir().unwrap();
    let run = common::run(dir.path());
    let stored = StoredRows::of(&run);
    let manifest = run.manifest();
    let mut by_rows = SummaryBuilder::new(manifest);
    by_rows.begin(&RunFacts::of(manifest)).unwrap();
    stored
        .rows()
        .chunks(7)
        .for_each(|batch| by_rows.rows(batch).unwrap());
    let mut by_tables = SummaryBuilder::new(manifest);
    for (stall, own) in &stored.stalls {
        by_tables.stall(stall);
        by_tables.attribution(own);
    }
    stored
        .intervals
        .iter()
        .for_each(|(row, _)| by_tables.interval(row));
    let json = |builder: SummaryBuilder<'_>| serde_json::to_value(builder.finish()).unwrap();
    assert_eq!(json(by_rows), json(by_tables));
}

/// Notes what it is given.
#[derive(Default)]
struct Notes(Vec<String>);

impl Sink for Notes {
    fn begin(&mut self, _facts: &RunFacts) -> Result<(), SinkError> {
        Ok(())
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        self.0.extend(batch.iter().map(|row| match row {
            Row::Stall(stall, own) => format!("{stall:?} {own:?}"),
            Row::Interval(row, lengths) => format!("{row:?} {}", lengths.len()),
            other => format!("{other:?}"),
        }));
        Ok(())
    }

    fn end(&mut self, _run: &RunManifest) -> Result<Delivery, SinkError> {
        Ok(Delivery::default())
    }
}

#[test]
fn a_sink_behind_a_reference_is_given_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let run = common::run(dir.path());
    let stored = StoredRows::of(&run);
    let (mut notes, mut behind) = (Notes::default(), Notes::default());
    stored
        .rows()
        .chunks(3)
        .for_each(|batch| notes.rows(batch).unwrap());
    let mut reference: &mut dyn Sink = &mut behind;
    Sink::begin(&mut reference, &RunFacts::of(run.manifest())).unwrap();
    stored
        .rows()
        .chunks(100)
        .for_each(|batch| Sink::rows(&mut reference, batch).unwrap());
    assert_eq!(notes.0, behind.0);
    assert_eq!(notes.0.len(), stored.stalls.len() + stored.intervals.len());
}
