//! The recorder's turns follow their pages, in order, also when a part of the trace is removed.

use crate::common::manifest;

use jitterscope_model::{Comm, CpuId, DrainTurn, Stall, StallId, ThreadRef, Ticks};
use jitterscope_store::{RunReader, RunWriter, TracePiece, TraceRole};
use std::path::Path;

fn writer(runs: &Path, limit: u64) -> RunWriter {
    let mut writer = RunWriter::create(runs, "TURNS", 0).unwrap();
    writer.limit_trace(limit);
    writer
}

/// Writes a turn: one page of `bytes` bytes, then its end.
fn turn(writer: &mut RunWriter, number: u64, bytes: usize) {
    let (first, last) = (Ticks(number * 10), Ticks(number * 10 + 5));
    writer
        .trace_page(
            TraceRole::Local,
            CpuId(1),
            first,
            last,
            &vec![number as u8; bytes],
        )
        .unwrap();
    writer
        .drain_turn(&DrainTurn {
            number,
            stalls: number,
            ..DrainTurn::default()
        })
        .unwrap();
}

fn begin(writer: &mut RunWriter) {
    let manifest = manifest();
    writer.begin(manifest.clock_start, manifest.rate).unwrap();
}

fn stall(at: u64, length: u64) -> Stall {
    let victim = ThreadRef {
        tid: 1,
        comm: Comm::new("x"),
    };
    Stall {
        id: StallId(0),
        cpu: CpuId(1),
        victim,
        start: Ticks(at),
        end: Ticks(at + length),
    }
}

/// The numbers of the turns whose pages precede them; `None` for what is missing.
fn reported(run: &RunReader) -> Vec<Option<u64>> {
    let mut page = None;
    let pieces = run.trace_pieces().unwrap().map(Result::unwrap);
    pieces
        .filter_map(|piece| match piece {
            TracePiece::Page(stored) => {
                page = Some(stored.first.0 / 10);
                None
            }
            TracePiece::Turn(turn) => {
                assert_eq!((page, turn.stalls), (Some(turn.number), turn.number));
                Some(Some(turn.number))
            }
            TracePiece::Missing => Some(None),
        })
        .collect()
}

#[test]
fn turns_and_pages_come_back_in_order_from_before_the_measurement_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), 1 << 30);
    (0..3).for_each(|number| turn(&mut writer, number, 100));
    begin(&mut writer);
    (3..6).for_each(|number| turn(&mut writer, number, 100));
    let run = RunReader::open(&writer.finish(manifest()).unwrap()).unwrap();
    assert_eq!(reported(&run), (0..6).map(Some).collect::<Vec<_>>());
    assert!(run.manifest().trace.complete);
    let pages = run.trace_pages(Ticks(0), Ticks(u64::MAX)).unwrap();
    assert_eq!(pages.len(), 6, "a turn is no page");
    assert!(pages.iter().all(|page| page.bytes.len() == 100));
}

#[test]
fn the_warm_up_is_given_up_first_and_the_run_is_whole_without_it() {
    let dir = tempfile::tempdir().unwrap();
    let limit = 512 << 10;
    let mut writer = writer(dir.path(), limit);
    // A segment each.
    (0..6).for_each(|number| turn(&mut writer, number, 64 << 10));
    begin(&mut writer);
    for number in 6..12 {
        turn(&mut writer, number, 64 << 10);
        writer.stall(&stall(number * 10 + 1, 2)).unwrap();
    }
    let run = RunReader::open(&writer.finish(manifest()).unwrap()).unwrap();
    assert!(run.manifest().trace.complete && run.manifest().trace.bytes <= limit);
    let reported = reported(&run);
    assert_eq!(
        reported[0], None,
        "the beginning is missing, and that is reported"
    );
    assert!(
        reported.ends_with(&(6..12).map(Some).collect::<Vec<_>>()),
        "{reported:?}"
    );
    assert_eq!(
        reported.iter().filter(|piece| piece.is_none()).count(),
        1,
        "{reported:?}"
    );
}

#[test]
fn a_gap_in_the_middle_is_reported_at_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), 300 << 10);
    begin(&mut writer);
    for number in 0..8 {
        turn(&mut writer, number, 64 << 10);
        // The longest stalls are at both ends.
        let length = if (2..6).contains(&number) { 1 } else { 4 };
        writer.stall(&stall(number * 10 + 1, length)).unwrap();
    }
    let run = RunReader::open(&writer.finish(manifest()).unwrap()).unwrap();
    assert!(!run.manifest().trace.complete);
    let reported = reported(&run);
    assert_eq!(
        (reported.first(), reported.last()),
        (Some(&Some(0)), Some(&Some(7))),
        "{reported:?}"
    );
    assert_eq!(
        reported.iter().filter(|piece| piece.is_none()).count(),
        1,
        "{reported:?}"
    );
}
