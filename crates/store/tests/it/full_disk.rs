//! A disk that fills up at any time: what was accepted by then is kept.

use crate::common;

use common::{manifest, stall, writer};
use hdrhistogram::Histogram;
use jitterscope_model::*;
use jitterscope_store::{
    Room, RunReader, RunWriter, StoreError, StoreSink, TraceRole, add_summary, list, partials,
};
use jitterscope_testing::Tmpfs;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// A disk of 100 MiB.
struct Disk(Tmpfs);

impl Disk {
    fn mount() -> Option<Disk> {
        Tmpfs::mount_or_run_where_it_can(100 << 20).map(Disk)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn free(&self) -> u64 {
        let stat = rustix::fs::statvfs(self.path()).unwrap();
        stat.f_bavail * stat.f_frsize
    }

    /// Fills the disk up to the last `left` bytes.
    fn fill(&self, left: u64) {
        let path = self.path().join(format!("other-{}", self.free()));
        let mut file = File::create(path).unwrap();
        let block = vec![1u8; 64 << 10];
        loop {
            let count = self.free().saturating_sub(left).min(block.len() as u64);
            if count < 4096 || file.write_all(&block[..count as usize]).is_err() {
                break;
            }
        }
        assert!(
            self.free() <= left + 4096,
            "{} bytes are still free",
            self.free()
        );
    }
}

/// Lengths without a pattern, so that they do not compress.
fn noise(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24
}

fn attribution(n: u64) -> Attribution {
    let part = |k: u64| {
        let name = format!("kworker/{:x}", noise(n * 7 + k));
        let evidence = Evidence::Other(name.as_str().into());
        Part {
            gross: Nanos(noise(n)),
            placement: Placement::Hole,
            confidence: Confidence::Low,
            ..Part::inside(Subject::Call(name.into()), Nanos(noise(n + k)), evidence)
        }
    };
    Attribution {
        stall: StallId(n),
        parts: (0..2).map(part).collect(),
    }
}

/// The rows accepted so far.
#[derive(Default)]
struct Taken {
    stalls: u64,
    attributions: u64,
    intervals: u64,
}

impl Taken {
    /// Writes up to `most` rows, until the disk is full.
    fn rows(&mut self, w: &mut RunWriter, most: u64) -> Option<StoreError> {
        for n in self.stalls..self.stalls + most {
            if let Err(error) = w.stall(&stall(n, n << 20, noise(n), "x")) {
                return Some(error);
            }
            self.stalls += 1;
            if let Err(error) = w.attribution(&attribution(n)) {
                return Some(error);
            }
            self.attributions += 1;
        }
        None
    }

    fn interval(&mut self, w: &mut RunWriter) {
        let mut lengths = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
        (0..2000).for_each(|n| lengths.record(noise(n) % 1_000_000_000 + 1).unwrap());
        let (start, end) = (Ticks(2_000 + self.intervals), Ticks(2_001 + self.intervals));
        let (max, stolen) = (Nanos(1), Nanos(1));
        let row = IntervalRow {
            cpu: CpuId(1),
            start,
            end,
            count: 2000,
            max,
            stolen,
        };
        w.interval(&row).unwrap();
        w.interval_histogram("spin", CpuId(1), start, end, &lengths)
            .unwrap();
        self.intervals += 1;
    }

    /// Checks that every accepted row is in the run.
    fn check(&self, path: &Path) -> RunReader {
        let run = RunReader::open(path).unwrap();
        let stalls: Vec<Stall> = run.stalls().unwrap().map(Result::unwrap).collect();
        assert_eq!(stalls.len() as u64, self.stalls);
        assert!(
            (0..)
                .zip(&stalls)
                .all(|(n, found)| *found == stall(n, n << 20, noise(n), "x"))
        );
        let attributions: Vec<Attribution> =
            run.attributions().unwrap().map(Result::unwrap).collect();
        assert_eq!(attributions.len() as u64, self.attributions);
        assert!(
            (0..)
                .zip(&attributions)
                .all(|(n, found)| *found == attribution(n))
        );
        assert_eq!(
            run.intervals().unwrap().map(Result::unwrap).count() as u64,
            self.intervals
        );
        let histograms: Vec<_> = run
            .interval_histograms()
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(histograms.len() as u64, self.intervals);
        assert!(histograms.iter().all(|found| found.histogram.len() == 2000));
        run
    }
}

fn trace_pages(w: &mut RunWriter, count: u64) -> Result<(), StoreError> {
    (0..count).try_for_each(|n| {
        w.trace_page(
            TraceRole::Local,
            CpuId(1),
            Ticks(n * 10),
            Ticks(n * 10 + 9),
            &[n as u8; 4000],
        )
    })
}

#[test]
fn a_disk_that_fills_up_at_once_costs_only_what_comes_afterwards() {
    // Before the first row, within the first row group and the second, and in the middle of a larger one.
    for rows in [0, 500, 20_000, 100_000] {
        for left in [0, 4 << 10, 300 << 10, 3 << 20] {
            let Some(disk) = Disk::mount() else { return };
            let mut w = writer(disk.path());
            let mut taken = Taken::default();
            assert!(taken.rows(&mut w, rows).is_none());
            taken.interval(&mut w);
            disk.fill(left);
            let error = taken.rows(&mut w, 3_000_000);
            assert!(matches!(error, Some(StoreError::Full { .. })), "{error:?}");
            // Rows are still refused, and the end of an interval still has its room.
            assert!(taken.rows(&mut w, 1).is_some_and(|error| error.is_full()));
            (0..4).for_each(|_| taken.interval(&mut w));
            let path = w.finish(manifest()).unwrap();
            taken.check(&path);
            assert_eq!(list(disk.path()).unwrap().0.len(), 1);
            eprintln!("{rows} rows, {left} bytes left: {} rows kept", taken.stalls);
        }
    }
}

#[test]
fn a_disk_that_is_full_at_the_end_costs_nothing_but_the_trace() {
    for left in [0, 4 << 10, 100 << 10] {
        let Some(disk) = Disk::mount() else { return };
        let mut w = writer(disk.path());
        let mut taken = Taken::default();
        assert!(taken.rows(&mut w, 20_000).is_none());
        taken.interval(&mut w);
        // Less than a segment, so it is still in memory.
        trace_pages(&mut w, 10).unwrap();
        disk.fill(left);
        let path = w.finish(manifest()).unwrap();
        let run = taken.check(&path);
        let reported = run
            .manifest()
            .warnings
            .iter()
            .any(|warning| warning.id() == "trace-discarded");
        let pages = run.trace_pages(Ticks(0), Ticks(u64::MAX)).unwrap().len();
        assert!(
            if reported { pages == 0 } else { pages == 10 },
            "{reported}, {pages} pages"
        );
        assert_eq!(reported, left < 40 << 10, "with {left} bytes left");
    }
}

#[test]
fn giving_up_the_trace_makes_room_for_rows() {
    let Some(disk) = Disk::mount() else { return };
    let mut w = writer(disk.path());
    let mut taken = Taken::default();
    trace_pages(&mut w, 5_000).unwrap();
    disk.fill(0);
    assert!(matches!(
        trace_pages(&mut w, 1_000),
        Err(StoreError::Full { .. })
    ));
    assert!(
        taken
            .rows(&mut w, 100_000)
            .is_some_and(|error| error.is_full())
    );
    w.discard_trace().unwrap();
    let before = taken.stalls;
    // The refused row has no attribution: continue after the last attribution.
    taken.stalls = taken.attributions;
    if before > taken.attributions {
        w.attribution(&attribution(taken.attributions)).unwrap();
        taken.attributions += 1;
        taken.stalls = before;
    }
    assert!(taken.rows(&mut w, 1_000).is_none());
    let run = taken.check(&w.finish(manifest()).unwrap());
    assert!(
        run.trace_pages(Ticks(0), Ticks(u64::MAX))
            .unwrap()
            .is_empty()
    );
    assert!(!run.manifest().trace.complete);
}

#[test]
fn a_full_sink_drops_the_trace_first_and_stores_no_later_row() {
    let Some(disk) = Disk::mount() else { return };
    let mut sink = StoreSink::new(RunWriter::create(disk.path(), "L", common::EPOCH).unwrap());
    sink.begin(&RunFacts::of(&manifest())).unwrap();
    for n in 0..300 {
        let (first, last) = (Ticks(n * 10), Ticks(n * 10 + 9));
        let page = RawPage {
            role: TraceRole::Local,
            cpu: CpuId(1),
            first,
            last,
            bytes: &[n as u8; 4000],
        };
        sink.rows(&[Row::Page(page)]).unwrap();
    }
    disk.fill(0);
    let mut rows = 0;
    let mut row = |sink: &mut StoreSink| {
        sink.rows(&[Row::Stall(&stall(rows, rows << 20, noise(rows), "x"), None)])
            .unwrap();
        rows += 1;
        assert!(rows < 3_000_000, "it never ends");
        rows
    };
    while sink.room() == Room::Ample {
        let pushed = row(&mut sink);
        assert_eq!(
            sink.tick().unwrap(),
            pushed,
            "the one that found no room is stored, too"
        );
    }
    assert_eq!(sink.room(), Room::TraceGivenUp);
    while !sink.is_stuck() {
        row(&mut sink);
    }
    let stored = sink.tick().unwrap();
    // Space becomes free: rows written now would follow a gap.
    for entry in fs::read_dir(disk.path()).unwrap().map(Result::unwrap) {
        if entry.file_name().to_string_lossy().starts_with("other-") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    for _ in 0..3 {
        row(&mut sink);
    }
    assert_eq!(
        (sink.tick().unwrap(), sink.room()),
        (stored, Room::None { unstored: 4 })
    );
    assert_eq!(
        sink.end(&manifest()).unwrap(),
        Delivery {
            lost: 4,
            ..Delivery::of(stored)
        }
    );
    Taken {
        stalls: stored,
        ..Taken::default()
    }
    .check(&list(disk.path()).unwrap().0[0].path);
}

#[test]
fn what_is_given_up_on_a_full_disk_leaves_nothing() {
    let Some(disk) = Disk::mount() else { return };
    let mut w = writer(disk.path());
    let mut taken = Taken::default();
    trace_pages(&mut w, 300).unwrap();
    disk.fill(0);
    assert!(taken.rows(&mut w, 3_000_000).is_some());
    drop(w);
    assert!(list(disk.path()).unwrap().0.is_empty());
    assert!(partials(disk.path()).unwrap().is_empty());
    let left: Vec<_> = fs::read_dir(disk.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn what_the_rows_come_to_is_left_out_where_it_finds_no_room() {
    let Some(disk) = Disk::mount() else { return };
    let mut w = writer(disk.path());
    let mut taken = Taken::default();
    assert!(taken.rows(&mut w, 100).is_none());
    disk.fill(8 << 10);
    w.summary(&(0..50_000).collect::<Vec<u64>>()).unwrap();
    let path = w.finish(manifest()).unwrap();
    assert!(!path.join("summary.json").exists());
    assert_eq!(taken.check(&path).summary::<Vec<u64>>().unwrap(), None);
}

#[test]
fn what_is_added_to_a_run_is_there_in_full_or_not_at_all() {
    let Some(disk) = Disk::mount() else { return };
    let mut w = writer(disk.path());
    let mut taken = Taken::default();
    assert!(taken.rows(&mut w, 100).is_none());
    let path = w.finish(manifest()).unwrap();
    let files = || {
        let names = fs::read_dir(&path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    let before = files();
    disk.fill(8 << 10);
    assert!(
        add_summary(&path, &(0..50_000).collect::<Vec<u64>>())
            .unwrap_err()
            .is_full()
    );
    assert_eq!(files(), before);
    add_summary(&path, &[1, 2, 3]).unwrap();
    assert_eq!(
        taken.check(&path).summary::<Vec<u64>>().unwrap(),
        Some(vec![1, 2, 3])
    );
    assert_eq!(files().len(), before.len() + 1);
    // A new one replaces the old one.
    add_summary(&path, &[4]).unwrap();
    assert_eq!(
        taken.check(&path).summary::<Vec<u64>>().unwrap(),
        Some(vec![4])
    );
}

#[test]
fn too_little_room_is_refused_before_anything_is_measured() {
    let Some(disk) = Disk::mount() else { return };
    disk.fill(32 << 20);
    let error = RunWriter::create(disk.path(), "L", common::EPOCH).err();
    assert!(matches!(error, Some(StoreError::Space { .. })), "{error:?}");
    assert_eq!(fs::read_dir(disk.path()).unwrap().count(), 1);
}
