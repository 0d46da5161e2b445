//! What a killed recorder leaves becomes a run. A kill is a copy of the folder of a living writer.

use crate::common;

use common::{manifest, stall, writer};
use hdrhistogram::Histogram;
use jitterscope_model::*;
use jitterscope_store::{
    KilledRun, Remains, RunReader, RunWriter, StoreError, StoredRow, TraceRole, killed_runs, list,
};
use jitterscope_testing::Tmpfs;
use proptest::prelude::*;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const STALLS: u64 = 20_000;
const PAGES: u64 = STALLS / 4;
const INTERVALS: u64 = 4;

fn part(n: u64, net: u64) -> Part {
    let name = format!("function {}", n % 30);
    Part {
        moved_from: n.is_multiple_of(7).then_some(CpuId(3)),
        ..Part::inside(
            Subject::Call(name.as_str().into()),
            Nanos(net),
            Evidence::LostRecords,
        )
    }
}

/// The parts of a stall sum to its length.
fn attribution(stall: &Stall) -> Attribution {
    let (n, length) = (stall.id.0, stall.length().0);
    let first = length / 3;
    Attribution {
        stall: stall.id,
        parts: vec![part(n, first), part(n + 1, length - first)],
    }
}

fn rows() -> Vec<(Stall, Attribution)> {
    let stall = |n: u64| stall(n, 2_000 + n * 1_000, 300 + n % 500, "js-spin/1");
    (0..STALLS)
        .map(|n| (stall(n), attribution(&stall(n))))
        .collect()
}

fn write(writer: &mut RunWriter) {
    writer.limit_trace(64 << 20);
    writer.beginning(&manifest()).unwrap();
    writer.trace_context(b"{}").unwrap();
    let lengths = Histogram::<u64>::new(3).unwrap();
    let each = STALLS / INTERVALS;
    for (n, (stall, attribution)) in (0..).zip(rows()) {
        writer.stall(&stall).unwrap();
        writer.attribution(&attribution).unwrap();
        if n % 4 == 0 {
            let (first, last) = (stall.start, stall.end);
            writer
                .trace_page(TraceRole::Local, CpuId(1), first, last, &[7; 1_000])
                .unwrap();
        }
        if n % each == each - 1 {
            let (start, end) = (Ticks(2_000 + (n + 1 - each) * 1_000), stall.end);
            let row = IntervalRow {
                cpu: CpuId(1),
                start,
                end,
                count: each,
                max: Nanos(n),
                stolen: Nanos(n),
            };
            writer.interval(&row).unwrap();
            writer
                .interval_histogram("spin", CpuId(1), start, end, &lengths)
                .unwrap();
        }
    }
}

/// The folder of a killed recorder, with all of its rows. Its name is that of a real one.
static LEFT: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| leave(u64::MAX));
/// The same of a recorder that has sealed rows several times.
static SEALED: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| leave(1));

fn leave(log: u64) -> (tempfile::TempDir, PathBuf) {
    let (dir, from) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut w = writer(from.path());
    w.limit_log(log);
    write(&mut w);
    let hidden = only_folder(from.path());
    let log = hidden.join("rows.log");
    // The rest of the rows goes to the log after a while.
    let before = fs::metadata(&log).unwrap().len();
    while fs::metadata(&log).unwrap().len() == before {
        w.tick().unwrap();
        std::thread::yield_now();
    }
    let left = dir.path().join(hidden.file_name().unwrap());
    copy(&hidden, &left);
    (dir, left)
}

fn only_folder(runs: &Path) -> PathBuf {
    let mut entries = fs::read_dir(runs).unwrap();
    let first = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none());
    first
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// A folder of runs with what the killed recorder left.
fn left() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = left_in(dir.path());
    (dir, path)
}

fn left_in(runs: &Path) -> PathBuf {
    let path = runs.join(LEFT.1.file_name().unwrap());
    copy(&LEFT.1, &path);
    path
}

/// As [`left`], with sealed rows.
fn left_sealed() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(SEALED.1.file_name().unwrap());
    copy(&SEALED.1, &path);
    (dir, path)
}

fn killed(runs: &Path) -> KilledRun {
    let (mut killed, failed) = killed_runs(runs).unwrap();
    assert_eq!((killed.len(), failed.len()), (1, 0));
    killed.remove(0)
}

fn finished(run: &RunReader) -> RunManifest {
    RunManifest {
        killed: true,
        ..run.manifest().clone()
    }
}

/// Finishes the only killed run. Returns its reader; `None` if nothing of it can be read.
fn finish(runs: &Path) -> Option<RunReader> {
    let killed = killed(runs);
    let path = match killed.rows().unwrap() {
        Remains::Rows(run) => killed.close(Some((&finished(&run), &["sums"]))).unwrap(),
        Remains::Complete => killed.close(None::<(&RunManifest, &u8)>).unwrap(),
        Remains::Nothing => {
            killed.remove().unwrap();
            assert_eq!(fs::read_dir(runs).unwrap().count(), 0);
            return None;
        }
    };
    assert_eq!(only_folder(runs), path, "nothing is left beside it");
    Some(RunReader::open(&path).unwrap())
}

type Found = (Vec<(Stall, Attribution)>, Vec<IntervalRow>);

fn found(run: &RunReader) -> Found {
    let (mut stalls, mut intervals) = (Vec::new(), Vec::new());
    let mut attributions = Vec::new();
    run.rows(|row| match row {
        StoredRow::Stall(stall) => stalls.push(stall),
        StoredRow::Attribution(attribution) => attributions.push(attribution),
        StoredRow::Interval(row) => intervals.push(row),
    })
    .unwrap();
    assert_eq!(stalls.len(), attributions.len());
    assert_eq!(run.interval_histograms().unwrap().count(), intervals.len());
    (stalls.into_iter().zip(attributions).collect(), intervals)
}

#[test]
fn what_was_written_becomes_a_run_with_its_trace() {
    let (runs, path) = left();
    assert!(list(runs.path()).unwrap().0.is_empty());
    let run = finish(runs.path()).unwrap();
    let (stalls, intervals) = found(&run);
    assert_eq!(stalls, rows());
    assert_eq!(intervals.len() as u64, INTERVALS);
    assert!(run.manifest().killed);
    assert_eq!(run.summary::<Vec<String>>().unwrap().unwrap(), ["sums"]);
    assert!(run.trace_context::<serde_json::Value>().unwrap().is_some());
    let pages = run.trace_pages(Ticks(0), Ticks(u64::MAX)).unwrap();
    assert_eq!(pages.len() as u64, PAGES);
    let trace = &run.manifest().trace;
    assert!(trace.complete && trace.limit_bytes == 64 << 20, "{trace:?}");
    let (listed, problems) = list(runs.path()).unwrap();
    assert!(listed[0].head.killed && problems.is_empty());
    let name = path.file_name().unwrap().to_str().unwrap();
    assert_eq!(
        run.path().file_name().unwrap().to_str().unwrap(),
        name.strip_prefix(".partial-").unwrap()
    );
    let mut names: Vec<_> = fs::read_dir(run.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "culprits.parquet",
            "details.json",
            "histograms.hlog",
            "intervals.parquet",
            "manifest.json",
            "parts.parquet",
            "remarks.parquet",
            "stalls.parquet",
            "summary.json",
            "trace",
            "views.sql"
        ]
    );
}

#[test]
fn a_run_that_is_finished_ordinarily_keeps_nothing_for_the_next_start() {
    let runs = tempfile::tempdir().unwrap();
    let mut w = writer(runs.path());
    write(&mut w);
    let path = w.finish(manifest()).unwrap();
    for name in ["rows.log", "beginning.json"] {
        assert!(!path.join(name).exists(), "{name}");
    }
    let run = RunReader::open(&path).unwrap();
    assert!(!run.manifest().killed);
    assert_eq!(found(&run).0, rows());
}

#[test]
fn a_kill_while_the_run_is_finished_costs_nothing() {
    type Kill = fn(&Path);
    let kills: [(&str, Kill); 5] = [
        ("half of the tables", |path| {
            fs::create_dir(path.join("finishing")).unwrap();
            fs::write(path.join("finishing/stalls.parquet"), "PAR1").unwrap();
        }),
        ("before the tables moved", |path| {
            // As `rows` does it, up to its first move.
            let runs = tempfile::tempdir().unwrap();
            left_in(runs.path());
            let other = killed(runs.path());
            let Remains::Rows(run) = other.rows().unwrap() else {
                panic!("there are rows");
            };
            fs::create_dir(path.join("finished")).unwrap();
            for name in ["stalls", "parts", "culprits", "remarks", "intervals"] {
                let name = format!("{name}.parquet");
                fs::copy(run.path().join(&name), path.join("finished").join(&name)).unwrap();
            }
        }),
        ("some tables have moved", |path| {
            let killed = killed(path.parent().unwrap());
            assert!(matches!(killed.rows().unwrap(), Remains::Rows(_)));
            drop(killed);
            fs::rename(
                path.join("parts.parquet"),
                path.join("finished/parts.parquet"),
            )
            .unwrap();
            fs::write(path.join("parts.parquet"), "of the killed recorder").unwrap();
        }),
        ("before the manifest", |path| {
            let killed = killed(path.parent().unwrap());
            assert!(matches!(killed.rows().unwrap(), Remains::Rows(_)));
            drop(killed);
            fs::write(path.join(".manifest.json"), "{").unwrap();
            fs::write(path.join("summary.json"), "{").unwrap();
        }),
        ("before the name", |path| {
            let runs = path.parent().unwrap();
            let run = finish(runs).unwrap();
            fs::rename(run.path(), path).unwrap();
        }),
    ];
    for (when, kill) in kills {
        let (runs, path) = left();
        kill(&path);
        let run = finish(runs.path()).unwrap_or_else(|| panic!("{when}"));
        let (stalls, intervals) = found(&run);
        assert!(stalls == rows(), "{when}: {} stalls", stalls.len());
        assert_eq!(intervals.len() as u64, INTERVALS, "{when}");
        assert!(run.manifest().killed, "{when}");
    }
}

#[test]
fn sealed_rows_and_those_of_the_log_behind_them_become_one_run() {
    let whole = fs::metadata(LEFT.1.join("rows.log")).unwrap().len();
    for again in [false, true] {
        let (runs, path) = left_sealed();
        assert!(fs::metadata(path.join("rows.log")).unwrap().len() < whole / 2);
        if again {
            // A kill while the tables were made, after the footers were put behind their sealed parts.
            let other = tempfile::tempdir().unwrap();
            let kept = other.path().join("log");
            fs::rename(path.join("rows.log"), &kept).unwrap();
            fs::write(path.join("rows.log"), "").unwrap();
            assert!(matches!(
                killed(runs.path()).rows().unwrap(),
                Remains::Rows(_)
            ));
            fs::remove_dir(path.join("finished")).unwrap();
            for entry in fs::read_dir(&SEALED.1).unwrap() {
                let from = entry.unwrap().path();
                if from.extension().is_some_and(|of| of == "parquet") {
                    let to = path.join(from.file_name().unwrap());
                    let mut bytes = fs::read(&from).unwrap();
                    bytes.extend(b"a footer, or half of one");
                    fs::write(to, bytes).unwrap();
                }
            }
            fs::rename(&kept, path.join("rows.log")).unwrap();
            let histograms = "histograms.hlog";
            fs::copy(SEALED.1.join(histograms), path.join(histograms)).unwrap();
        }
        let run = finish(runs.path()).unwrap();
        let (stalls, intervals) = found(&run);
        assert!(stalls == rows(), "{} stalls", stalls.len());
        assert_eq!(intervals.len() as u64, INTERVALS);
        assert!(!run.path().join("sealed.json").exists());
    }
}

#[test]
fn the_log_of_before_the_last_seal_is_passed_over() {
    let (runs, path) = left_sealed();
    // Killed between the seal and the log that follows it.
    fs::copy(LEFT.1.join("rows.log"), path.join("rows.log")).unwrap();
    let run = finish(runs.path()).unwrap();
    let (stalls, _) = found(&run);
    assert!(rows().starts_with(&stalls) && stalls.len() as u64 > STALLS / 2);
}

#[test]
fn sealed_rows_that_are_damaged_leave_the_folder_as_it_is() {
    type Damage = fn(&Path);
    let damages: [Damage; 3] = [
        |path| fs::write(path.join("sealed.json"), "{").unwrap(),
        |path| fs::write(path.join("stalls.parquet"), "PAR1").unwrap(),
        |path| {
            let table = path.join("parts.parquet");
            let length = fs::metadata(&table).unwrap().len() as usize;
            fs::write(&table, vec![0xff; length]).unwrap();
        },
    ];
    for damage in damages {
        let (runs, path) = left_sealed();
        damage(&path);
        let error = killed(runs.path()).rows().err().unwrap();
        assert!(
            matches!(error, StoreError::Damaged { .. } | StoreError::Cap { .. }),
            "{error}"
        );
        assert!(path.join("rows.log").exists());
    }
}

#[test]
fn without_a_row_or_its_beginning_nothing_is_left_to_finish() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 6] = [
        ("no log", |path| {
            fs::remove_file(path.join("rows.log")).unwrap();
        }),
        ("an empty log", |path| {
            fs::write(path.join("rows.log"), "").unwrap();
        }),
        ("a log of something else", |path| {
            fs::write(path.join("rows.log"), [7; 5_000]).unwrap();
        }),
        ("no beginning", |path| {
            fs::remove_file(path.join("beginning.json")).unwrap();
        }),
        ("half a beginning", |path| {
            fs::write(path.join("beginning.json"), "{\"schema_version\":3,").unwrap();
        }),
        ("a beginning of another version", |path| {
            let text = fs::read_to_string(path.join("beginning.json")).unwrap();
            let other = text.replace("\"schema_version\":3", "\"schema_version\":4");
            assert_ne!(text, other);
            fs::write(path.join("beginning.json"), other).unwrap();
        }),
    ];
    for (what, damage) in damages {
        let (runs, path) = left();
        damage(&path);
        assert!(finish(runs.path()).is_none(), "{what}");
    }
}

#[test]
fn what_is_not_whole_of_the_trace_is_left_out() {
    type Damage = fn(&Path);
    let segments = |path: &Path| path.join("trace/segments");
    let damages: [(&str, Damage, bool); 4] = [
        (
            "a cut page",
            |path| {
                let last = path.join("trace/segments/000004.seg");
                let length = fs::metadata(&last).unwrap().len();
                let file = fs::File::options().write(true).open(&last).unwrap();
                file.set_len(length - 10).unwrap();
            },
            true,
        ),
        (
            "no frame",
            |path| fs::write(path.join("trace/segments/000004.seg"), "JSTRA").unwrap(),
            true,
        ),
        (
            "a segment is gone",
            |path| fs::remove_file(path.join("trace/segments/000002.seg")).unwrap(),
            false,
        ),
        (
            "no context",
            |path| fs::remove_file(path.join("trace/context.json")).unwrap(),
            false,
        ),
    ];
    for (what, damage, complete) in damages {
        let (runs, path) = left();
        assert_eq!(fs::read_dir(segments(&path)).unwrap().count(), 4);
        damage(&path);
        let run = finish(runs.path()).unwrap();
        let pages = run.trace_pages(Ticks(0), Ticks(u64::MAX)).unwrap();
        assert!((pages.len() as u64) < PAGES, "{what}");
        assert_eq!(pages.is_empty(), what == "no context", "{what}");
        assert_eq!(run.manifest().trace.complete, complete, "{what}");
        assert_eq!(found(&run).0, rows(), "{what}");
    }
}

#[test]
fn an_interval_without_its_histogram_is_left_out() {
    let (runs, path) = left();
    let log = path.join("histograms.hlog");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, &text[..text.len() - 20]).unwrap();
    let run = finish(runs.path()).unwrap();
    assert_eq!(found(&run).1.len() as u64, INTERVALS - 1);
}

#[test]
fn a_full_disk_leaves_the_run_to_the_next_start() {
    let Some(disk) = Tmpfs::mount_or_run_where_it_can(16 << 20) else {
        return;
    };
    left_in(disk.path());
    let other = disk.path().join("..other");
    let mut filler = fs::File::create(&other).unwrap();
    while filler.write_all(&[1; 4096]).is_ok() {}
    let run = killed(disk.path());
    let error = run.rows().err().unwrap();
    assert!(error.is_full(), "{error}");
    drop(run);
    fs::remove_file(&other).unwrap();
    drop(filler);
    let run = finish(disk.path()).unwrap();
    assert_eq!(found(&run).0, rows());
}

#[test]
fn a_name_that_is_taken_leaves_the_run_where_it_is() {
    let (runs, path) = left();
    let name = path.file_name().unwrap().to_str().unwrap();
    let taken = runs.path().join(name.strip_prefix(".partial-").unwrap());
    fs::create_dir(&taken).unwrap();
    let run = killed(runs.path());
    let Remains::Rows(reader) = run.rows().unwrap() else {
        panic!("there are rows");
    };
    let closed = run.close(Some((&finished(&reader), &0)));
    assert!(
        matches!(closed, Err(StoreError::Write { .. })),
        "{closed:?}"
    );
    fs::remove_dir(&taken).unwrap();
    assert_eq!(found(&finish(runs.path()).unwrap()).0, rows());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_log_cut_off_or_changed_anywhere_gives_whole_stalls_up_to_there(at: prop::sample::Index, flip: Option<u8>) {
        let (runs, path) = left();
        let log = path.join("rows.log");
        let mut bytes = fs::read(&log).unwrap();
        let at = at.index(bytes.len());
        match flip {
            Some(flip) => bytes[at] ^= flip.max(1),
            None => bytes.truncate(at),
        }
        fs::write(&log, bytes).unwrap();
        if let Some(run) = finish(runs.path()) {
            let (stalls, _) = found(&run);
            prop_assert!(rows().starts_with(&stalls));
            for (stall, attribution) in stalls {
                let sum: u64 = attribution.parts.iter().map(|part| part.net.0).sum();
                prop_assert_eq!(sum, stall.length().0);
            }
        }
    }
}
