//! Pages of a stored trace by time, from the run and from its index.

use crate::common;

use common::{manifest, writer};
use jitterscope_model::*;
use jitterscope_store::{RunReader, StoreError, StoredPage};
use proptest::prelude::*;
use std::fs;
use std::path::Path;

/// A run with a page of `bytes` bytes for each span.
fn run(runs: &Path, spans: &[(u64, u64)], bytes: usize) -> RunReader {
    let mut writer = writer(runs);
    writer.limit_trace(1 << 30);
    for (n, (first, length)) in spans.iter().enumerate() {
        let (first, last) = (Ticks(*first), Ticks(first + length));
        writer
            .trace_page(
                TraceRole::Senders,
                CpuId(n as u32),
                first,
                last,
                &vec![n as u8; bytes],
            )
            .unwrap();
    }
    RunReader::open(&writer.finish(manifest()).unwrap()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn the_pages_of_a_time_are_all_that_overlap_it(
        spans in proptest::collection::vec((0u64..1_000, 0u64..50), 0..9),
        times in proptest::collection::vec((0u64..1_000, 0u64..200), 1..20),
    ) {
        let dir = tempfile::tempdir().unwrap();
        // Some segments of a few pages each.
        let run = run(dir.path(), &spans, 600_000);
        let index = run.trace_index().unwrap();
        // An older run, without the times of its segments.
        let old = tempfile::tempdir().unwrap();
        let old = self::run(old.path(), &spans, 600_000);
        let noted = old.path().join("trace/spans.json");
        prop_assert_eq!(noted.exists(), !spans.is_empty());
        let _ = fs::remove_file(noted);
        for (from, length) in times {
            let (from, to) = (Ticks(from), Ticks(from + length));
            let mut wanted: Vec<(Ticks, u32)> = (0..)
                .zip(&spans)
                .filter(|(_, (first, length))| *first <= to.0 && from.0 <= first + length)
                .map(|(n, (first, _))| (Ticks(*first), n))
                .collect();
            wanted.sort();
            let reported = |mut pages: Vec<StoredPage>| {
                assert!(pages.is_sorted_by_key(|page| page.first));
                pages.sort_by_key(|page| (page.first, page.cpu));
                pages.iter().map(|page| (page.first, page.cpu.0)).collect::<Vec<_>>()
            };
            prop_assert_eq!(&reported(run.trace_pages(from, to).unwrap()), &wanted);
            prop_assert_eq!(&reported(index.pages(from, to).unwrap()), &wanted);
            prop_assert_eq!(&reported(old.trace_pages(from, to).unwrap()), &wanted);
            prop_assert_eq!(&reported(old.trace_index().unwrap().pages(from, to).unwrap()), &wanted);
        }
    }
}

#[test]
fn an_index_reads_nothing_of_other_times() {
    let dir = tempfile::tempdir().unwrap();
    // A segment each.
    let run = run(dir.path(), &[(10, 5), (20, 5), (30, 5)], 2 << 20);
    let index = run.trace_index().unwrap();
    fs::write(run.path().join("trace/segments/000002.seg"), "no segment").unwrap();
    let found = |from, to| index.pages(Ticks(from), Ticks(to)).map(|pages| pages.len());
    assert_eq!(
        [
            found(0, 19).unwrap(),
            found(26, 99).unwrap(),
            found(15, 15).unwrap()
        ],
        [1, 1, 1]
    );
    assert!(found(19, 20).is_err() && found(25, 25).is_err());
}

#[test]
fn a_moment_is_read_without_a_look_at_others_where_their_times_are_noted() {
    let dir = tempfile::tempdir().unwrap();
    let run = run(dir.path(), &[(10, 5), (20, 5), (30, 5)], 2 << 20);
    let file = |name: &str| run.path().join("trace").join(name);
    fs::write(file("segments/000002.seg"), "no segment").unwrap();
    let found = |from, to| {
        run.trace_pages(Ticks(from), Ticks(to))
            .map(|pages| pages.len())
    };
    assert_eq!(
        [
            found(0, 19).unwrap(),
            found(26, 99).unwrap(),
            found(15, 15).unwrap()
        ],
        [1, 1, 1]
    );
    assert!(found(19, 20).is_err() && found(25, 25).is_err());
    // An invalid list of times, or one without a segment's, counts as none.
    for text in ["[]", "[{}]", "no JSON"] {
        fs::write(file("spans.json"), text).unwrap();
        assert!(found(0, 19).is_err(), "{text}");
    }
}

#[test]
fn a_segment_is_an_eighth_of_the_limit_and_ends_with_a_turn() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    writer.limit_trace(1 << 20);
    for number in 0..30 {
        let (first, last) = (Ticks(number), Ticks(number));
        writer
            .trace_page(TraceRole::Local, CpuId(0), first, last, &[0; 20_000])
            .unwrap();
        writer
            .drain_turn(&DrainTurn {
                number,
                ..DrainTurn::default()
            })
            .unwrap();
    }
    let run = RunReader::open(&writer.finish(manifest()).unwrap()).unwrap();
    let sizes: Vec<u64> = (1..=4)
        .map(|n| {
            fs::metadata(run.path().join(format!("trace/segments/00000{n}.seg")))
                .unwrap()
                .len()
        })
        .collect();
    // Seven turns are the first that reach 128 KiB.
    assert!(
        sizes.iter().all(|size| (140_000..160_000).contains(size)),
        "{sizes:?}"
    );
}

#[test]
fn a_segment_that_is_too_large_for_one_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let run = run(dir.path(), &[(10, 5)], 100);
    let segment = run.path().join("trace/segments/000001.seg");
    let of_length = |bytes: u64| {
        fs::File::options()
            .write(true)
            .open(&segment)
            .unwrap()
            .set_len(bytes)
            .unwrap();
        match run.trace_pages(Ticks(10), Ticks(15)) {
            Err(StoreError::Damaged { why, .. }) => why,
            other => format!("{other:?}"),
        }
    };
    assert!(of_length((32 << 20) + 1).contains("so large"));
    assert!(!of_length(32 << 20).contains("so large"));
}
