//! The run directory as a whole: what is written is read back, and an incomplete folder is not a run.

use crate::common;
use crate::tables::{self, Columns, Values, texts, u32s};

use common::{clean, manifest, stall, writer};
use jitterscope_model::*;
use jitterscope_store::{RunReader, SCHEMA, StoreError, TraceRole, list, partials};
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// One subject of each kind, including one of a newer version.
fn subject(of: u64, name: &str) -> Subject {
    let task = || Task {
        tid: (!of.is_multiple_of(5)).then_some(-3),
        tgid: Some(9),
        process: of.is_multiple_of(3).then(|| "of process".into()),
        comm: name.into(),
        was: of.is_multiple_of(7).then(|| "before".into()),
        class: Some(SchedClass::of_priority((of % 150) as i32 - 5)),
        owner: of.is_multiple_of(2).then(|| Owner {
            uid: Some(1000),
            cgroup: Some("/user.slice".into()),
            executable: Some("/opt/of".into()),
        }),
        kernel: of.is_multiple_of(3).then_some(of.is_multiple_of(2)),
        allowed: of.is_multiple_of(4).then(|| "0-2,7".into()),
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
                beside: None,
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
        beneath: Some("udp-send".into()),
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
        turns: 1 + (net % 3) as u32,
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
    let dead = dir.path().join(".partial-20261121T000000Z-L-abcdef");
    fs::create_dir(&dead).unwrap();
    fs::write(dead.join("manifest.json"), "{}").unwrap();
    assert!(list(dir.path()).unwrap().0.is_empty());
    assert_eq!(clean(dir.path()).unwrap(), (1, 0));
    assert!(!dead.exists());
    drop(w);
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        0,
        "dropped before its end it leaves nothing"
    );
}

#[test]
fn an_owner_is_known_by_its_lock() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (locked, left) = (
        at(".partial-20261121T000001Z-L-abcdef"),
        at(".partial-20261121T000002Z-L-abcdef"),
    );
    for folder in [&locked, &left] {
        fs::create_dir(folder).unwrap();
    }
    let owner = jitterscope_platform::OwnerLock::take(&locked).unwrap();
    let found = partials(dir.path()).unwrap();
    assert_eq!(found.iter().map(|p| &p.path).collect::<Vec<_>>(), [&left]);
    assert_eq!(clean(dir.path()).unwrap(), (1, 0));
    assert!(locked.exists() && !left.exists());
    drop(owner);
    assert_eq!(clean(dir.path()).unwrap(), (1, 0));
    assert!(!locked.exists());
}

#[test]
fn one_stall_is_found_among_many_row_groups() {
    let dir = tempfile::tempdir().unwrap();
    let mut w = writer(dir.path());
    // Ids have gaps, and not every stall has parts.
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
    let gaps = path.join("stalls.parquet");
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
    let dir = tempfile::tempdir().unwrap();
    let mut w = writer(dir.path());
    // The clock of these tests starts at tick 1000; a tick is a nanosecond.
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
        let columns = tables::read(&path.join(table));
        let mut columns = columns.into_iter();
        match columns.find(|(name, _)| name == "start_realtime_ns") {
            Some((_, Values::U64(times))) => times.into_iter().flatten().collect::<Vec<_>>(),
            _ => panic!("{table} has no times"),
        }
    };
    assert_eq!(
        times("stalls.parquet"),
        [common::EPOCH, common::EPOCH + 6_000_000_000]
    );
    assert_eq!(times("intervals.parquet"), [common::EPOCH + 1_000]);
}

#[test]
fn the_files_have_the_columns_that_the_schema_lists() {
    let dir = tempfile::tempdir().unwrap();
    let path = writer(dir.path()).finish(manifest()).unwrap();
    for (file, columns) in SCHEMA {
        let written = tables::names(&path.join(file));
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

/// A run and the bytes of its tables, made once.
struct Whole {
    _dir: tempfile::TempDir,
    path: PathBuf,
    tables: Vec<(PathBuf, Vec<u8>)>,
}

static WHOLE: LazyLock<Whole> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    let mut w = writer(dir.path());
    for n in 0..40 {
        w.stall(&stall(n, n * 100, n, "x")).unwrap();
        let (stall, parts) = (StallId(n), vec![part("f", n, n % 2 == 0)]);
        w.attribution(&Attribution { stall, parts }).unwrap();
    }
    let path = w.finish(manifest()).unwrap();
    let tables = ["stalls", "parts", "culprits", "remarks"].map(|table| {
        let file = path.join(format!("{table}.parquet"));
        let bytes = fs::read(&file).unwrap();
        (file, bytes)
    });
    Whole {
        _dir: dir,
        path,
        tables: tables.into(),
    }
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damaged_tables_are_errors_or_rows_but_never_a_panic(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..4),
    ) {
        let Whole { path, tables, .. } = &*WHOLE;
        for (file, bytes) in tables {
            let mut bytes = bytes.clone();
            for (at, with) in &flips {
                let at = at.index(bytes.len());
                bytes[at] ^= with;
            }
            fs::write(file, bytes).unwrap();
        }
        let run = RunReader::open(path).unwrap();
        let _ = run.stalls().map(|rows| rows.take(10_000).filter(Result::is_ok).count());
        let _ = run.attributions().map(|rows| rows.take(10_000).filter(Result::is_ok).count());
    }
}

/// Rewrites a table of a run with other columns.
fn rewrite(path: &Path, change: impl Fn(&str, Values) -> Option<Values>, more: Columns) {
    let old = tables::read(path).into_iter();
    let kept = old.filter_map(|(name, values)| Some((name.clone(), change(&name, values)?)));
    let columns: Columns = kept.chain(more).collect();
    let properties = WriterProperties::builder().build();
    tables::table(path, 1, |_| columns.clone(), properties);
}

#[test]
fn what_a_newer_version_wrote_is_kept_and_never_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let mut w = writer(dir.path());
    w.stall(&stall(0, 5, 100, "x")).unwrap();
    w.attribution(&Attribution {
        stall: StallId(0),
        parts: vec![part("noise", 13 * 30, true)],
    })
    .unwrap();
    let path = w.finish(manifest()).unwrap();
    for table in ["culprits.parquet", "remarks.parquet"] {
        let change = |name: &str, values| match name {
            "kind" => Some(texts(1, "accelerator")),
            "placement" => Some(texts(1, "sideways")),
            "confidence" => Some(texts(1, "absolute")),
            "sender_context" => Some(texts(1, "hyperthread")),
            // One column fewer, and one more.
            "others_stalled" => None,
            _ => Some(values),
        };
        let weather = ("weather".into(), texts(1, "fair"));
        rewrite(&path.join(table), change, vec![weather]);
    }
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
    let dir = tempfile::tempdir().unwrap();
    let mut w = writer(dir.path());
    w.stall(&stall(0, 5, 100, "x")).unwrap();
    w.attribution(&Attribution {
        stall: StallId(0),
        parts: vec![part("noise", 12, true)],
    })
    .unwrap();
    let path = w.finish(manifest()).unwrap();
    let change = |name: &str, values| match name {
        "tid" => Some(texts(1, "x")),
        _ => Some(values),
    };
    rewrite(&path.join("culprits.parquet"), change, Vec::new());
    let run = RunReader::open(&path).unwrap();
    assert!(matches!(
        run.attributions().unwrap().next(),
        Some(Err(StoreError::Damaged { .. }))
    ));
}

/// A busy machine: more culprits than a segment has, some of them present throughout.
#[test]
fn culprits_of_all_segments_are_read_back_in_order_and_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut w = writer(dir.path());
    let parts = |n: u64| {
        let renamed = format!("name {n}");
        vec![
            part("always", n, true),
            part(&renamed, n, n.is_multiple_of(2)),
        ]
    };
    let stalls = u64::from(2 * CulpritTable::SEGMENT + 100);
    for n in 0..stalls {
        w.stall(&stall(n, n * 100, n, "x")).unwrap();
        let stall = StallId(n);
        let parts = parts(n);
        w.attribution(&Attribution { stall, parts }).unwrap();
    }
    let run = RunReader::open(&w.finish(manifest()).unwrap()).unwrap();
    let found = run.attributions().unwrap().map(Result::unwrap);
    assert!(found.map(|found| found.parts).eq((0..stalls).map(parts)));
    for n in [0, 1, stalls / 2, stalls - 1] {
        let (_, found) = run.stall(StallId(n)).unwrap().unwrap();
        assert_eq!(found.unwrap().parts, parts(n));
    }
}

#[test]
fn a_part_without_its_culprit_is_damage() {
    let renumbered = |table: &str, column: &str, numbers: [u32; 3]| {
        let dir = tempfile::tempdir().unwrap();
        let mut w = writer(dir.path());
        for n in 0..3 {
            w.stall(&stall(n, n * 100, n, "x")).unwrap();
            let stall = StallId(n);
            let parts = vec![part(&format!("f{n}"), n, true)];
            w.attribution(&Attribution { stall, parts }).unwrap();
        }
        let path = w.finish(manifest()).unwrap();
        let change = |name: &str, values| match name == column {
            true => Some(u32s(numbers)),
            false => Some(values),
        };
        rewrite(&path.join(table), change, Vec::new());
        let run = RunReader::open(&path).unwrap();
        let found: Result<Vec<Attribution>, StoreError> = run.attributions().unwrap().collect();
        found
    };
    for (table, column, numbers, said) in [
        (
            "parts.parquet",
            "culprit_id",
            [0, 1, 3],
            "culprits.parquet is damaged: it has no row 3",
        ),
        (
            "parts.parquet",
            "culprit_id",
            [0, 1, u32::MAX],
            "it has no row 4294967295",
        ),
        (
            "culprits.parquet",
            "culprit_id",
            [0, 2, 1],
            "row 1 has the number 2",
        ),
    ] {
        let error = renumbered(table, column, numbers).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let repeated = renumbered("parts.parquet", "culprit_id", [2, 0, 2]).unwrap();
    assert_eq!(repeated[1].parts[0].culprit.subject.name(), "f0");
    assert_eq!(repeated[2].parts[0].culprit, repeated[0].parts[0].culprit);
}

/// The most compressible case: the reader's bound on rows must be above it.
#[test]
fn stalls_that_are_all_alike_are_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut w = writer(dir.path());
    let (stalls, parts) = (300_000, vec![part("tick", 500, true)]);
    let mut attribution = Attribution {
        stall: StallId(0),
        parts,
    };
    for n in 0..stalls {
        w.stall(&stall(n, n * 1_000_000, 500, "x")).unwrap();
        attribution.stall = StallId(n);
        w.attribution(&attribution).unwrap();
    }
    let path = w.finish(manifest()).unwrap();
    let run = RunReader::open(&path).unwrap();
    assert_eq!(
        run.stalls().unwrap().map(Result::unwrap).count() as u64,
        stalls
    );
    assert_eq!(
        run.attributions().unwrap().map(Result::unwrap).count() as u64,
        stalls
    );
}
