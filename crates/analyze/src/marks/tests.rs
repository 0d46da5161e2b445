//! Marks against stalls of known places.

use super::*;
use jitterscope_model::{AppMark, Comm, Evidence, Part, Task, ThreadRef, Ticks};
use jitterscope_store::RunReader;
use std::path::Path;

const START: u64 = 1_795_297_200_000_000_000;
const MS: u64 = 1_000_000;

/// A run of a second, at a tick a nanosecond.
fn manifest() -> RunManifest {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recording/tests/fixtures/attach");
    let mut manifest = RunReader::open(&fixture).unwrap().manifest().clone();
    manifest.rate.hz = 1_000_000_000;
    manifest.clock_start.realtime_ns = START;
    (manifest.clock_start.ticks, manifest.clock_end.ticks) = (Ticks(0), Ticks(1000 * MS));
    for thread in &mut manifest.threads {
        (thread.from, thread.until) = (Ticks(0), Ticks(1000 * MS));
    }
    assert_eq!(manifest.duration(), Nanos(1000 * MS));
    manifest
}

fn log(marks: &[(&str, u64, u64)]) -> MarkLog {
    let marks = marks.iter().map(|(name, at, length)| AppMark {
        name: (*name).to_owned(),
        start_realtime_ns: START + at * MS,
        length_ns: Nanos(length * MS),
    });
    MarkLog {
        file: "app.log".into(),
        form: jitterscope_model::MarkForm::Log,
        unread: 2,
        marks: marks.collect(),
        ..MarkLog::default()
    }
}

fn stall(id: u64, tid: i32, from: u64, to: u64) -> Stall {
    Stall {
        id: StallId(id),
        cpu: CpuId(1),
        victim: ThreadRef {
            tid,
            comm: Comm::new("app"),
        },
        start: Ticks(from * MS),
        end: Ticks(to * MS),
    }
}

fn by(id: u64, parts: &[(&str, u64)]) -> Attribution {
    let parts = parts.iter().map(|(comm, ms)| {
        let task = Task {
            comm: (*comm).into(),
            ..Task::default()
        };
        Part::inside(
            Subject::Thread(task),
            Nanos(ms * MS),
            Evidence::SwitchRecords,
        )
    });
    Attribution {
        stall: StallId(id),
        parts: parts.collect(),
    }
}

fn names(culprits: &[MarkCulprit]) -> Vec<(String, u64)> {
    culprits
        .iter()
        .map(|of| (of.subject.name().into_owned(), of.total_ns.0 / MS))
        .collect()
}

#[test]
fn a_mark_has_the_stalls_that_meet_it_with_the_time_inside() {
    let manifest = manifest();
    let mut fold = MarkFold::new(
        vec![log(&[("req", 100, 50), ("req", 300, 10), ("gc", 90, 100)])],
        &manifest,
    );
    for (stall, attribution) in [
        // Wholly inside both.
        (stall(0, 7, 110, 130), by(0, &[("backup", 15), ("cron", 5)])),
        // Of another thread; half of it reaches beyond the request.
        (stall(1, 8, 140, 160), by(1, &[("backup", 20)])),
        (stall(2, 7, 500, 600), by(2, &[("late", 100)])),
    ] {
        fold.stall(&stall);
        fold.attribution(&attribution);
    }
    let found = fold.finish();
    assert_eq!((found.logs[0].marks, found.logs[0].unread), (3, 2));
    let [gc, req] = &found.names[..] else {
        panic!("{found:#?}")
    };
    assert_eq!(
        (gc.name.as_str(), gc.count, gc.stalled_ns),
        ("gc", 1, Nanos(40 * MS))
    );
    assert_eq!((req.count, req.with_stalls), (2, 1));
    assert_eq!(
        (req.total_ns, req.stalled_ns),
        (Nanos(60 * MS), Nanos(30 * MS))
    );
    assert_eq!(
        names(&req.culprits),
        [("backup".to_owned(), 25), ("cron".to_owned(), 5)]
    );
    // 140 of 1000 ms were stalled.
    assert!(
        req.expected_ns.0.abs_diff(60 * MS * 14 / 100) < MS / 100,
        "{req:?}"
    );
    let first = &found.worst[0];
    assert_eq!((first.name.as_str(), first.stalls), ("gc", 2));
    // Each thread was stalled for 20 of its 100 ms.
    assert!((first.explained - 0.2).abs() < 1e-9);
    let second = &found.worst[1];
    assert_eq!((second.stall, second.offset_ns), (0, Nanos(100 * MS)));
    assert!((second.explained - 0.4).abs() < 1e-9, "{second:?}");
}

#[test]
fn a_moment_has_what_was_just_before_it() {
    let manifest = manifest();
    let mut fold = MarkFold::new(vec![log(&[("slow", 200, 0), ("slow", 700, 0)])], &manifest);
    fold.stall(&stall(0, 7, 150, 200));
    fold.attribution(&by(0, &[("backup", 50)]));
    fold.stall(&stall(1, 7, 701, 702));
    fold.attribution(&by(1, &[("late", 1)]));
    let found = fold.finish();
    let row = &found.names[0];
    assert_eq!((row.count, row.moments, row.with_stalls), (2, 2, 1));
    assert_eq!(row.stalled_ns, MOMENT);
    assert_eq!(names(&row.culprits), [("backup".to_owned(), 1)]);
    assert_eq!(found.worst[0].length_ns, Nanos::ZERO);
    assert!((found.worst[0].explained - 1.0).abs() < 1e-9);
}

#[test]
fn of_very_many_marks_on_one_moment_the_longest_are_left_out() {
    let manifest = manifest();
    let marks: Vec<(&str, u64, u64)> = [("connection", 0, 1000); 500]
        .into_iter()
        .chain([("request", 100, 50); 20])
        .collect();
    let mut fold = MarkFold::new(vec![log(&marks)], &manifest);
    fold.stall(&stall(0, 7, 110, 130));
    fold.attribution(&by(0, &[("backup", 20)]));
    let found = fold.finish();
    let count = |name: &str| {
        let row = found.names.iter().find(|row| row.name == name);
        row.map(|row| (row.count, row.with_stalls))
    };
    // 20 requests take the time of the run once, so 63 connections have room.
    assert_eq!(count("request"), Some((20, 20)));
    assert_eq!(count("connection"), Some((63, 63)));
    assert_eq!((found.crowded, found.logs[0].marks), (437, 520));
}

#[test]
fn very_many_names_share_a_row_and_the_sums_stay() {
    let manifest = manifest();
    let many: Vec<(String, u64)> = (0..200).map(|n| (format!("n{n}"), n * 4)).collect();
    let marks: Vec<(&str, u64, u64)> = many
        .iter()
        .map(|(name, at)| (name.as_str(), *at, 1))
        .collect();
    let found = MarkFold::new(vec![log(&marks)], &manifest).finish();
    assert_eq!(found.names.len(), NAMES + 1);
    assert_eq!(found.names.iter().map(|row| row.count).sum::<u64>(), 200);
    assert!(found.worst.is_empty());
}

proptest::proptest! {
    /// As all pairs show.
    #[test]
    fn the_marks_that_meet_a_stall_are_found(
        spans in proptest::collection::vec((0u64..900, 0u64..100), 0..40),
        (from, length) in (0u64..990, 1u64..10),
    ) {
        let mut marks: Vec<Spanned> = spans
            .iter()
            .map(|(from, length)| Spanned {
                name: String::new(),
                start_realtime_ns: 0,
                length: Nanos::ZERO,
                at: *from..from + length,
                latest: 0,
            })
            .collect();
        marks.sort_by_key(|mark| mark.at.start);
        index(&mut marks);
        let at = from..from + length;
        let mut found = Vec::new();
        meeting(&marks, &at, &mut |mark| found.push(mark));
        let expected: Vec<usize> = (0..marks.len())
            .filter(|mark| marks[*mark].at.start < at.end && marks[*mark].at.end > at.start)
            .collect();
        proptest::prop_assert_eq!(found, expected);
    }
}
