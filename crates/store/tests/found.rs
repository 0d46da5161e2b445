//! What is found of runs and in a run: by id and label, files beside the tables, sizes.

mod common;

use common::{EPOCH, manifest, writer};
use hdrhistogram::Histogram;
use jitterscope_model::{ClockReading, CpuId, RunManifest, TickRate, Ticks};
use jitterscope_store::{RunReader, RunWriter, resolve, resolve_all, size_on_disk};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A run of this label that began so many seconds after the first.
fn run(runs: &Path, label: &str, second: u64) -> PathBuf {
    let begun = EPOCH + second * 1_000_000_000;
    let mut writer = RunWriter::create(runs, label, begun).unwrap();
    let clock =
        ClockReading { ticks: Ticks(1_000), monotonic_raw_ns: 1, realtime_ns: begun, width_ticks: 10 };
    writer.begin(clock, TickRate::NANOSECONDS).unwrap();
    writer.finish(RunManifest { label: label.into(), ..manifest() }).unwrap()
}

#[test]
fn an_id_means_one_run_and_a_label_all_that_bear_it() {
    let dir = tempfile::tempdir().unwrap();
    let [first, other, second] = [("A", 0), ("B", 1), ("A", 2)].map(|(label, at)| run(dir.path(), label, at));
    let id = RunReader::open(&second).unwrap().manifest().id.to_string();
    assert_eq!(resolve_all(dir.path(), &id).unwrap().as_slice(), std::slice::from_ref(&second));
    assert_eq!(resolve_all(dir.path(), "A").unwrap(), [first, second.clone()]);
    assert_eq!(resolve_all(dir.path(), "B").unwrap().as_slice(), std::slice::from_ref(&other));
    assert_eq!(resolve_all(dir.path(), "latest").unwrap().as_slice(), std::slice::from_ref(&second));
    assert_eq!(resolve_all(dir.path(), other.to_str().unwrap()).unwrap(), [other]);
    assert!(resolve_all(dir.path(), "C").is_err());
    // A later run that calls itself by the id of another is not taken for it.
    run(dir.path(), &id, 3);
    assert_eq!(resolve(dir.path(), &id).unwrap(), second);
    assert_eq!(resolve_all(dir.path(), &id).unwrap(), [second.as_path()]);
    // Nor one that calls itself by its folder's name.
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
    // Whatever it leads to is not the run's.
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
    assert_eq!(RunReader::open(&with).unwrap().journal(), Some(with.join(name)));
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
