//! The run directory as a whole: what goes in comes out, and what is not whole is no run.

mod common;

use common::{manifest, stall, writer};
use jitterscope_model::*;
use jitterscope_store::{RunReader, SCHEMA, StoreError, TraceRole, clean_partials, list, partials};
use proptest::prelude::*;
use std::fs;

fn part(name: &str, net: u64, sender: bool) -> Part {
    let via = Some("on_each_cpu".into());
    let sender = sender.then_some(Sender {
        context: ExecutionContext::Interrupt,
        comm: None,
        tid: -3,
        cpu: CpuId(9),
        via,
    });
    let culprit = Culprit { kind: CulpritKind::Ipi, name: name.into(), detail: "".into(), sender };
    let (placement, confidence) = (Placement::Hole, Confidence::Low);
    Part { culprit, net: Nanos(net), gross: Nanos(net), placement, confidence, evidence: name.into() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn rows_come_back_as_they_went_in(
        rows in proptest::collection::vec(
            (0u64..1 << 60, 0u64..1 << 40, "[ -~\u{e9}]{0,7}", proptest::collection::vec(("\\PC{0,12}", any::<u64>(), any::<bool>()), 1..4)),
            0..80,
        ),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut w = writer(dir.path());
        let (mut stalls, mut attributions) = (Vec::new(), Vec::new());
        for (id, (start, length, comm, parts)) in (0u64..).zip(rows) {
            stalls.push(stall(id, start, length, &comm));
            let parts = parts.iter().map(|(name, net, sender)| part(name, *net, *sender)).collect();
            attributions.push(Attribution { stall: StallId(id), parts });
            w.stall(stalls.last().unwrap()).unwrap();
            w.attribution(attributions.last().unwrap()).unwrap();
        }
        let path = w.finish(manifest()).unwrap();
        let run = RunReader::open(&path).unwrap();
        prop_assert_eq!(run.stalls().unwrap().map(Result::unwrap).collect::<Vec<_>>(), stalls);
        prop_assert_eq!(run.attributions().unwrap().map(Result::unwrap).collect::<Vec<_>>(), attributions);
    }
}

#[test]
fn an_unfinished_run_is_no_run_and_a_living_recorders_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let w = writer(dir.path());
    assert!(list(dir.path()).unwrap().0.is_empty());
    assert!(partials(dir.path()).unwrap().is_empty(), "its recorder lives: this process");
    let dead = dir.path().join(".partial-4194305-1-20261121T000000Z-L-abcdef");
    fs::create_dir(&dead).unwrap();
    fs::write(dead.join("manifest.json"), "{}").unwrap();
    assert!(list(dir.path()).unwrap().0.is_empty());
    assert_eq!(clean_partials(dir.path()).unwrap().0.len(), 1);
    assert!(!dead.exists());
    drop(w);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "dropped before its end it leaves nothing");
}

#[test]
fn an_owner_is_known_by_its_lock_and_one_that_cannot_be_removed_keeps_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    // Of an earlier version, by a process that lives: this one.
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let started = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap();
    let old = at(&format!(".partial-{}-{started}-20261121T000000Z-L-abcdef", std::process::id()));
    let (locked, left) = (at(".partial-20261121T000001Z-L-abcdef"), at(".partial-20261121T000002Z-L-abcdef"));
    for folder in [&old, &locked, &left] {
        fs::create_dir(folder).unwrap();
    }
    let owner = jitterscope_platform::OwnerLock::take(&locked).unwrap();
    let found = partials(dir.path()).unwrap();
    assert_eq!(found.iter().map(|p| &p.path).collect::<Vec<_>>(), [&left]);
    let (removed, kept) = clean_partials(dir.path()).unwrap();
    assert_eq!((removed.len(), kept.len()), (1, 0));
    assert!(old.exists() && locked.exists() && !left.exists());
    drop(owner);
    assert_eq!(clean_partials(dir.path()).unwrap().0.len(), 1);
    assert!(old.exists() && !locked.exists());
}

#[test]
fn the_files_have_the_columns_that_the_schema_lists() {
    let dir = tempfile::tempdir().unwrap();
    let path = writer(dir.path()).finish(manifest()).unwrap();
    for (file, columns) in SCHEMA {
        let file = fs::File::open(path.join(file)).unwrap();
        let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let written: Vec<String> = reader.schema().fields().iter().map(|f| f.name().clone()).collect();
        let listed: Vec<&str> = columns.iter().map(|(name, _, _)| *name).collect();
        assert_eq!(written, listed);
    }
}

#[test]
fn a_cut_segment_is_an_error_that_names_the_file_whatever_else_was_found() {
    let dir = tempfile::tempdir().unwrap();
    let mut w = writer(dir.path());
    w.limit_trace(1 << 20);
    for n in 0..60u64 {
        w.trace_page(TraceRole::Local, CpuId(1), Ticks(n * 10), Ticks(n * 10 + 9), &[0; 4096]).unwrap();
    }
    let run = RunReader::open(&w.finish(manifest()).unwrap()).unwrap();
    assert_eq!(run.trace_pages(Ticks(0), Ticks(u64::MAX)).unwrap().len(), 60);
    let second = run.path().join("trace/segments/000002.seg");
    let bytes = fs::read(&second).unwrap();
    fs::write(&second, &bytes[..bytes.len() - 100]).unwrap();
    match run.trace_pages(Ticks(0), Ticks(u64::MAX)) {
        Err(StoreError::Damaged { path, .. }) => assert_eq!(path, second),
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damaged_tables_are_errors_or_rows_but_never_a_panic(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..4),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut w = writer(dir.path());
        for n in 0..40 {
            w.stall(&stall(n, n * 100, n, "x")).unwrap();
            w.attribution(&Attribution { stall: StallId(n), parts: vec![part("f", n, n % 2 == 0)] }).unwrap();
        }
        let path = w.finish(manifest()).unwrap();
        for file in ["gaps.parquet", "attributions.parquet"] {
            let file = path.join(file);
            let mut bytes = fs::read(&file).unwrap();
            for (at, with) in &flips {
                let at = at.index(bytes.len());
                bytes[at] ^= with;
            }
            fs::write(&file, bytes).unwrap();
        }
        let run = RunReader::open(&path).unwrap();
        let _ = run.stalls().map(|rows| rows.take(10_000).filter(Result::is_ok).count());
        let _ = run.attributions().map(|rows| rows.take(10_000).filter(Result::is_ok).count());
    }
}
