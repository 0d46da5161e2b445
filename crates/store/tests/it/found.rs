//! Finding runs by id and label, files beside the tables, and sizes.

use crate::common;

use common::{EPOCH, clean, manifest, writer};
use hdrhistogram::Histogram;
use jitterscope_model::{ClockReading, CpuId, RunManifest, TickRate, Ticks};
use jitterscope_store::{
    RunReader, RunWriter, list, partials, remove, resolve, resolve_all, size_on_disk,
};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A run of this label that began `second` seconds after the first.
fn run(runs: &Path, label: &str, second: u64) -> PathBuf {
    let begun = EPOCH + second * 1_000_000_000;
    let mut writer = RunWriter::create(runs, label, begun).unwrap();
    let clock = ClockReading {
        ticks: Ticks(1_000),
        monotonic_raw_ns: 1,
        realtime_ns: begun,
        boottime_ns: None,
        width_ticks: 10,
    };
    writer.begin(clock, TickRate::NANOSECONDS).unwrap();
    writer
        .finish(RunManifest {
            label: label.into(),
            ..manifest()
        })
        .unwrap()
}

#[test]
fn an_id_means_one_run_and_a_label_all_that_bear_it() {
    let dir = tempfile::tempdir().unwrap();
    let [first, other, second] =
        [("A", 0), ("B", 1), ("A", 2)].map(|(label, at)| run(dir.path(), label, at));
    let id = RunReader::open(&second).unwrap().manifest().id.to_string();
    assert_eq!(
        resolve_all(dir.path(), &id).unwrap().as_slice(),
        std::slice::from_ref(&second)
    );
    assert_eq!(
        resolve_all(dir.path(), "A").unwrap(),
        [first, second.clone()]
    );
    assert_eq!(
        resolve_all(dir.path(), "B").unwrap().as_slice(),
        std::slice::from_ref(&other)
    );
    assert_eq!(
        resolve_all(dir.path(), "latest").unwrap().as_slice(),
        std::slice::from_ref(&second)
    );
    assert_eq!(
        resolve_all(dir.path(), other.to_str().unwrap()).unwrap(),
        [other]
    );
    assert!(resolve_all(dir.path(), "C").is_err());
    // A later run labelled with the id of another is not taken for it.
    run(dir.path(), &id, 3);
    assert_eq!(resolve(dir.path(), &id).unwrap(), second);
    assert_eq!(resolve_all(dir.path(), &id).unwrap(), [second.as_path()]);
    // Nor is one labelled with the folder name of another.
    let folder = second.file_name().unwrap().to_str().unwrap();
    run(dir.path(), folder, 4);
    assert_eq!(resolve(dir.path(), folder).unwrap(), second);
    assert_eq!(resolve_all(dir.path(), folder).unwrap(), [second.as_path()]);
}

#[test]
fn a_runs_size_is_that_of_its_files_at_all_depths() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    fs::create_dir_all(run.join("trace/deep")).unwrap();
    fs::write(run.join("a"), [0; 10]).unwrap();
    fs::write(run.join("trace/b"), [0; 200]).unwrap();
    fs::write(run.join("trace/deep/c"), [0; 3_000]).unwrap();
    // The target of the link is not part of the run.
    fs::write(dir.path().join("large"), [0; 50_000]).unwrap();
    symlink(dir.path().join("large"), run.join("link")).unwrap();
    assert_eq!(size_on_disk(&run), 3_210);
    assert_eq!(size_on_disk(&dir.path().join("none")), 0);
}

#[test]
fn a_journal_is_there_or_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let plain = writer(dir.path()).finish(manifest()).unwrap();
    assert_eq!(RunReader::open(&plain).unwrap().journal(), None);
    let with = writer(dir.path());
    let (_file, name) = with.make_journal().unwrap();
    let with = with.finish(manifest()).unwrap();
    assert_eq!(
        RunReader::open(&with).unwrap().journal(),
        Some(with.join(name))
    );
}

#[test]
fn what_was_summed_up_comes_back_and_what_was_not_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let mut with = writer(dir.path());
    let sums: Vec<u64> = (0..50_000).collect();
    with.summary(&sums).unwrap();
    let with = RunReader::open(&with.finish(manifest()).unwrap()).unwrap();
    assert_eq!(with.summary::<Vec<u64>>().unwrap(), Some(sums));
    let without = RunReader::open(&writer(dir.path()).finish(manifest()).unwrap()).unwrap();
    assert_eq!(without.summary::<Vec<u64>>().unwrap(), None);
}

#[test]
fn an_intervals_histogram_comes_back_with_its_tag_and_time() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    let mut histogram = Histogram::new(3).unwrap();
    histogram.record_n(700, 5).unwrap();
    writer
        .interval_histogram(
            "spin",
            CpuId(3),
            Ticks(1_000 + 2_000_000_000),
            Ticks(1_000 + 3_500_000_000),
            &histogram,
        )
        .unwrap();
    let path = writer.finish(manifest()).unwrap();
    let text = fs::read_to_string(path.join("histograms.hlog")).unwrap();
    let row = text.lines().find(|line| line.starts_with("Tag=")).unwrap();
    assert!(row.starts_with("Tag=spin-cpu3,2.000,1.500,"), "{row}");
}

#[test]
fn the_histogram_log_begins_with_what_its_readers_need() {
    let dir = tempfile::tempdir().unwrap();
    let path = writer(dir.path()).finish(manifest()).unwrap();
    let text = fs::read_to_string(path.join("histograms.hlog")).unwrap();
    assert!(text.contains("nanoseconds]"), "{text}");
    for time in [
        "#[StartTime: 1795213189.826 ",
        "#[BaseTime: 1795213189.826 ",
    ] {
        assert!(text.contains(time), "{time}: {text}");
    }
    assert!(text.contains("#[MaxValueDivisor: 1000000"), "{text}");
}

#[test]
fn a_line_that_no_histogram_has_is_reported_and_ends_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let path = writer(dir.path()).finish(manifest()).unwrap();
    let log = path.join("histograms.hlog");
    let lines = |bytes: Vec<u8>| {
        fs::write(&log, bytes).unwrap();
        let found = RunReader::open(&path)
            .unwrap()
            .interval_histograms()
            .unwrap();
        found
            .map(|line| line.err().map(|error| error.to_string()))
            .collect::<Vec<_>>()
    };
    let long = lines([vec![b'#'; 16 << 20], b"\nTag=x,0,1,2,AAAA\n".to_vec()].concat());
    assert!(
        matches!(long.as_slice(), [Some(why)] if why.contains("too long for a histogram")),
        "{long:?}"
    );
    let no_histogram =
        lines(b"Tag=x,0.000,1.000,2.000,AAAA\nTag=x,0.000,1.000,2.000,AAAA\n".to_vec());
    assert_eq!(no_histogram.len(), 1, "{no_histogram:?}");
    assert_eq!(lines(b"#comment\n".to_vec()), []);
}

#[test]
fn a_finished_run_gives_back_the_room_that_was_reserved_for_it() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let path = writer(dir.path()).finish(manifest()).unwrap();
    for entry in fs::read_dir(&path).unwrap() {
        let entry = entry.unwrap();
        let found = entry.metadata().unwrap();
        let on_disk = found.blocks() * 512;
        assert!(
            !found.is_file() || on_disk <= found.len() + (64 << 10),
            "{:?}: {on_disk}",
            entry.path()
        );
    }
}

#[test]
fn a_request_for_an_absent_run_lists_the_existing_ones() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing");
    assert_eq!(list(&missing).unwrap().0.len(), 0);
    let none = resolve(&missing, "X").unwrap_err().to_string();
    assert!(
        none.contains("'X'") && none.contains("there are none yet"),
        "{none}"
    );
    for n in 0..7 {
        run(dir.path(), &format!("L{n}"), n);
    }
    let some = resolve(dir.path(), "X").unwrap_err().to_string();
    let newest: Vec<usize> = (2..7)
        .rev()
        .map(|n| some.find(&format!(" (L{n})")).unwrap())
        .collect();
    assert!(newest.is_sorted() && !some.contains("(L1)"), "{some}");
}

#[test]
fn a_missing_folder_has_no_runs_and_a_file_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing");
    assert!(partials(&missing).unwrap().is_empty());
    assert_eq!(clean(&missing).unwrap(), (0, 0));
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(list(&file).is_err() && partials(&file).is_err() && clean(&file).is_err());
}

#[test]
fn the_newest_run_is_meant_even_where_a_label_says_so_of_others() {
    let dir = tempfile::tempdir().unwrap();
    let [first, last] = [("A", 0), ("B", 1)].map(|(label, at)| run(dir.path(), label, at));
    let head = first.join("manifest.json");
    let text = fs::read_to_string(&head).unwrap();
    fs::write(
        &head,
        text.replace(r#""label": "A""#, r#""label": "latest""#),
    )
    .unwrap();
    assert_eq!(list(dir.path()).unwrap().0[0].head.label, "latest");
    assert_eq!(resolve_all(dir.path(), "latest").unwrap(), [last]);
}

#[test]
fn a_run_named_by_its_folder_alone_is_looked_for_here() {
    let error = remove(Path::new("no-such-run")).unwrap_err().to_string();
    assert!(error.contains("no-such-run"), "{error}");
}

#[test]
fn an_absent_run_is_none_and_an_unreadable_one_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = writer(dir.path()).finish(manifest()).unwrap();
    let open = || RunReader::open(&path).unwrap();
    let pages = || open().trace_pages(Ticks(0), Ticks(u64::MAX));
    assert!(pages().unwrap().is_empty() && open().trace_context::<u8>().unwrap().is_none());
    for name in ["machine.json", "summary.json", "trace/context.json"] {
        fs::create_dir(path.join(name)).unwrap();
    }
    assert!(open().machine().is_err() && open().summary::<u8>().is_err());
    assert!(open().trace_context::<u8>().is_err());
    fs::remove_dir_all(path.join("trace")).unwrap();
    assert!(pages().unwrap().is_empty() && open().trace_context::<u8>().unwrap().is_none());
    assert!(
        open()
            .trace_index()
            .unwrap()
            .pages(Ticks(0), Ticks(9))
            .unwrap()
            .is_empty()
    );
    assert_eq!(open().trace_pieces().unwrap().count(), 0);
    fs::write(path.join("trace"), "").unwrap();
    assert!(pages().is_err() && open().trace_index().is_err() && open().trace_pieces().is_err());
}
