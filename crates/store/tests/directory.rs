//! The run directory as a whole: what goes in comes out, and what is not whole is no run.

mod common;

use common::{manifest, stall, writer};
use jitterscope_model::*;
use jitterscope_store::{RunReader, SCHEMA, StoreError, TraceRole, clean_partials, list, partials};
use proptest::prelude::*;
use std::fs;
use std::path::Path;

/// One of each kind of subject, and what a newer version might say.
fn subject(of: u64, name: &str) -> Subject {
    let task = || Task {
        tid: (!of.is_multiple_of(5)).then_some(-3),
        tgid: Some(9),
        process: of.is_multiple_of(3).then(|| "of process".into()),
        comm: name.into(),
        class: Some(SchedClass::of_priority((of % 150) as i32 - 5)),
        owner: of.is_multiple_of(2).then(|| Owner {
            uid: 1000,
            cgroup: Some("/user.slice".into()),
        }),
        kernel: of.is_multiple_of(3).then_some(of.is_multiple_of(2)),
    };
    let named = || Name::from(name);
    match of % 13 {
        0 => Subject::Thread(task()),
        1 => Subject::Work(Work {
            function: Some(named()),
            workqueue: Some("events".into()),
            worker: Some(Worker {
                tid: Some(4),
                comm: None,
                class: None,
            }),
            unbound: None,
        }),
        2 => Subject::Interrupt {
            number: Some(25),
            action: "virtio0".into(),
        },
        3 => Subject::Softirq((of % 16) as u32),
        4 => Subject::Timer {
            function: Some(named()),
            source: Some(TimerSource::Wheel),
        },
        5 => Subject::Call(named()),
        6 => Subject::Vector(named()),
        7 => Subject::Throttle(task()),
        8 => Subject::Verdict(Verdict::LateTimer, About::Meanwhile(Meanwhile::Ran(task()))),
        9 => Subject::Verdict(
            Verdict::UntracedInterrupt,
            About::Vectors(["HYP".into(), "PIN".into()].into()),
        ),
        10 => Subject::Unknown {
            kind: "accelerator".into(),
            name: named(),
            detail: "queue 3".into(),
        },
        11 => {
            let limit = of.is_multiple_of(2).then_some(QuotaLimit {
                quota_us: 30_000,
                period_us: u64::MAX,
            });
            Subject::Quota(Quota {
                cgroup: named(),
                limit,
            })
        }
        _ => Subject::Unknown {
            kind: "unresolved".into(),
            name: "of 2030".into(),
            detail: "".into(),
        },
    }
}

fn part(name: &str, net: u64, sender: bool) -> Part {
    let sender = sender.then_some(Sender {
        context: ExecutionContext::Interrupt,
        comm: None,
        tid: -3,
        tgid: None,
        cpu: CpuId(9),
        via: Some("on_each_cpu".into()),
    });
    let culprit = Culprit {
        subject: subject(net, name),
        sender,
    };
    Part {
        phase: net.is_multiple_of(3).then(|| {
            Phase::from_word(if net.is_multiple_of(2) {
                "dispatch"
            } else {
                "teleport"
            })
        }),
        moved_from: net.is_multiple_of(5).then_some(CpuId(3)),
        placement: Placement::Hole,
        confidence: Confidence::Low,
        others_stalled: net.is_multiple_of(7).then_some(2),
        ..Part::inside(culprit, Nanos(net), Evidence::from_word(name))
    }
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
fn every_kind_of_culprit_comes_back_beside_all_others() {
    let dir = tempfile::tempdir().unwrap();
    let mut w = writer(dir.path());
    let parts = (0..130)
        .map(|n| part(&format!("name {n}"), n, n.is_multiple_of(4)))
        .collect();
    let attribution = Attribution {
        stall: StallId(0),
        parts,
    };
    w.attribution(&attribution).unwrap();
    let run = RunReader::open(&w.finish(manifest()).unwrap()).unwrap();
    assert_eq!(
        run.attributions()
            .unwrap()
            .map(Result::unwrap)
            .collect::<Vec<_>>(),
        [attribution]
    );
}

#[test]
fn an_unfinished_run_is_no_run_and_a_living_recorders_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let w = writer(dir.path());
    assert!(list(dir.path()).unwrap().0.is_empty());
    assert!(
        partials(dir.path()).unwrap().is_empty(),
        "its recorder lives: this process"
    );
    let dead = dir
        .path()
        .join(".partial-4194305-1-20261121T000000Z-L-abcdef");
    fs::create_dir(&dead).unwrap();
    fs::write(dead.join("manifest.json"), "{}").unwrap();
    assert!(list(dir.path()).unwrap().0.is_empty());
    assert_eq!(clean_partials(dir.path()).unwrap().0.len(), 1);
    assert!(!dead.exists());
    drop(w);
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        0,
        "dropped before its end it leaves nothing"
    );
}

#[test]
fn an_owner_is_known_by_its_lock_and_one_that_cannot_be_removed_keeps_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    // Of an earlier version, by a process that lives: this one.
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let started = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .nth(19)
        .unwrap();
    let old = at(&format!(
        ".partial-{}-{started}-20261121T000000Z-L-abcdef",
        std::process::id()
    ));
    let (locked, left) = (
        at(".partial-20261121T000001Z-L-abcdef"),
        at(".partial-20261121T000002Z-L-abcdef"),
    );
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
fn one_stall_is_found_among_many_row_groups() {
    let dir = tempfile::tempdir().unwrap();
    let mut w = writer(dir.path());
    // Numbers leave gaps, and not every stall has parts.
    for n in 0..100_000u64 {
        w.stall(&stall(n * 3, 1_000 + n * 10, n % 7, "x")).unwrap();
        let part = |net| {
            Part::whole(
                Subject::Softirq(1),
                Nanos(net),
                Confidence::High,
                Evidence::SwitchRecords,
            )
        };
        if n % 5 != 0 {
            w.attribution(&Attribution {
                stall: StallId(n * 3),
                parts: vec![part(n), part(1)],
            })
            .unwrap();
        }
    }
    let run = RunReader::open(&w.finish(manifest()).unwrap()).unwrap();
    for n in [
        0, 1, 5, 16_383, 16_384, 32_767, 32_768, 65_535, 65_536, 80_003, 99_999,
    ] {
        let (found, attribution) = run.stall(StallId(n * 3)).unwrap().unwrap();
        assert_eq!(found, stall(n * 3, 1_000 + n * 10, n % 7, "x"));
        let nets = attribution.map(|of| of.parts.iter().map(|part| part.net.0).collect::<Vec<_>>());
        assert_eq!(nets, (n % 5 != 0).then(|| vec![n, 1]));
    }
    assert_eq!(run.stall(StallId(1)).unwrap(), None);
    assert_eq!(run.stall(StallId(300_000)).unwrap(), None);
}

#[test]
fn nothing_but_the_rows_around_one_stall_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut w = writer(dir.path());
    (0..70_000).for_each(|n| w.stall(&stall(n, 1_000 + n * 10, 3, "x")).unwrap());
    let path = w.finish(manifest()).unwrap();
    let run = RunReader::open(&path).unwrap();
    // The first rows are damaged.
    let gaps = path.join("gaps.parquet");
    let mut bytes = fs::read(&gaps).unwrap();
    bytes[4..5_000].fill(0xff);
    fs::write(&gaps, bytes).unwrap();
    assert!(run.stalls().is_err() || run.stalls().unwrap().any(|row| row.is_err()));
    assert!(run.stall(StallId(3)).is_err());
    assert_eq!(
        run.stall(StallId(69_999)).unwrap(),
        Some((stall(69_999, 700_990, 3, "x"), None))
    );
    assert_eq!(run.stall(StallId(70_000)).unwrap(), None);
}

#[test]
fn rows_have_the_time_of_day() {
    use arrow_array::{Array, UInt64Array};
    let dir = tempfile::tempdir().unwrap();
    let mut w = writer(dir.path());
    // The clock of these tests reads 1000 ticks of a nanosecond at the beginning.
    w.stall(&stall(0, 1_000, 1, "x")).unwrap();
    w.stall(&stall(1, 6_000_000_000 + 1_000, 1, "x")).unwrap();
    let (max, stolen) = (Nanos(1), Nanos(1));
    let row = IntervalRow {
        cpu: CpuId(1),
        start: Ticks(2_000),
        end: Ticks(3_000),
        count: 1,
        max,
        stolen,
    };
    w.interval(&row).unwrap();
    let path = w.finish(manifest()).unwrap();
    let times = |table: &str| {
        let file = fs::File::open(path.join(table)).unwrap();
        let rows =
            parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let batch = rows.build().unwrap().next().unwrap().unwrap();
        let column = batch.column_by_name("start_realtime_ns").unwrap();
        column
            .as_any()
            .downcast_ref::<UInt64Array>()
            .unwrap()
            .values()
            .to_vec()
    };
    assert_eq!(
        times("gaps.parquet"),
        [common::EPOCH, common::EPOCH + 6_000_000_000]
    );
    assert_eq!(times("intervals.parquet"), [common::EPOCH + 1_000]);
}

#[test]
fn the_files_have_the_columns_that_the_schema_lists() {
    let dir = tempfile::tempdir().unwrap();
    let path = writer(dir.path()).finish(manifest()).unwrap();
    for (file, columns) in SCHEMA {
        let file = fs::File::open(path.join(file)).unwrap();
        let reader =
            parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let written: Vec<String> = reader
            .schema()
            .fields()
            .iter()
            .map(|f| f.name().clone())
            .collect();
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
        w.trace_page(
            TraceRole::Local,
            CpuId(1),
            Ticks(n * 10),
            Ticks(n * 10 + 9),
            &[0; 4096],
        )
        .unwrap();
    }
    let run = RunReader::open(&w.finish(manifest()).unwrap()).unwrap();
    assert_eq!(
        run.trace_pages(Ticks(0), Ticks(u64::MAX)).unwrap().len(),
        60
    );
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

/// Rewrites a table of a run, as a newer version would have written it.
fn rewrite(path: &Path, change: impl Fn(&arrow_array::RecordBatch) -> arrow_array::RecordBatch) {
    use parquet::arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder};
    let batches: Vec<_> = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path).unwrap())
        .unwrap()
        .build()
        .unwrap()
        .map(|batch| change(&batch.unwrap()))
        .collect();
    let file = fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batches[0].schema(), None).unwrap();
    batches
        .iter()
        .for_each(|batch| writer.write(batch).unwrap());
    writer.close().unwrap();
}

#[test]
fn what_a_newer_version_wrote_is_kept_and_never_damaged() {
    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    use std::sync::Arc;
    let dir = tempfile::tempdir().unwrap();
    let mut w = writer(dir.path());
    w.stall(&stall(0, 5, 100, "x")).unwrap();
    w.attribution(&Attribution {
        stall: StallId(0),
        parts: vec![part("noise", 13 * 30, true)],
    })
    .unwrap();
    let path = w.finish(manifest()).unwrap();
    rewrite(&path.join("attributions.parquet"), |batch| {
        let texts =
            |text: &str| Arc::new(StringArray::from(vec![text; batch.num_rows()])) as ArrayRef;
        let schema = batch.schema();
        let columns = schema
            .fields()
            .iter()
            .zip(batch.columns())
            .map(|(field, column)| {
                let column = match field.name().as_str() {
                    "kind" => texts("accelerator"),
                    "placement" => texts("sideways"),
                    "confidence" => texts("absolute"),
                    "sender_context" => texts("hyperthread"),
                    _ => column.clone(),
                };
                (field.name().clone(), column)
            });
        // One column more, and one less.
        let more = columns
            .filter(|(name, _)| name != "others_stalled")
            .chain([("weather".into(), texts("fair"))]);
        RecordBatch::try_from_iter(more).unwrap()
    });
    let manifest_path = path.join("details.json");
    let mut value: serde_json::Value =
        serde_json::from_slice(&fs::read(&manifest_path).unwrap()).unwrap();
    value["sources"] = serde_json::json!([{"name": "s", "status": "borrowed", "reason": "r", "loses": "l",
        "fix": "f", "lost": 0, "since": 2030}]);
    fs::write(&manifest_path, value.to_string()).unwrap();

    let run = RunReader::open(&path).unwrap();
    assert_eq!(
        run.manifest().sources[0].status,
        SourceStatus::Other("borrowed".into())
    );
    let attribution = run.attributions().unwrap().next().unwrap().unwrap();
    let part = &attribution.parts[0];
    assert_eq!(
        (part.culprit.kind(), part.culprit.subject.kind_word()),
        (CulpritKind::Unknown, "accelerator")
    );
    assert_eq!(part.culprit.subject.name(), "noise");
    assert_eq!(
        (part.placement, part.confidence),
        (Placement::Unknown, Confidence::Unknown)
    );
    assert_eq!(
        part.culprit.sender.as_ref().unwrap().context,
        ExecutionContext::Unknown
    );
    assert_eq!((part.net, part.others_stalled), (Nanos(390), None));
}

#[test]
fn a_column_of_another_type_is_damage() {
    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    use std::sync::Arc;
    let dir = tempfile::tempdir().unwrap();
    let mut w = writer(dir.path());
    w.stall(&stall(0, 5, 100, "x")).unwrap();
    w.attribution(&Attribution {
        stall: StallId(0),
        parts: vec![part("noise", 12, true)],
    })
    .unwrap();
    let path = w.finish(manifest()).unwrap();
    rewrite(&path.join("attributions.parquet"), |batch| {
        let schema = batch.schema();
        let columns = schema
            .fields()
            .iter()
            .zip(batch.columns())
            .map(|(field, column)| {
                let text = || Arc::new(StringArray::from(vec!["x"; batch.num_rows()])) as ArrayRef;
                let column = if field.name() == "tid" {
                    text()
                } else {
                    column.clone()
                };
                (field.name().clone(), column)
            });
        RecordBatch::try_from_iter(columns).unwrap()
    });
    let run = RunReader::open(&path).unwrap();
    assert!(matches!(
        run.attributions().unwrap().next(),
        Some(Err(StoreError::Damaged { .. }))
    ));
}
