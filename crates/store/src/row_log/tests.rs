use super::*;
use crate::rows::StoredRow;
use jitterscope_model::*;
use jitterscope_platform::HeldDir;
use proptest::prelude::*;
use std::fs;
use std::path::Path;

/// Where the first batch begins.
const BEGIN: usize = MAGIC.len() + 4;

fn log(dir: &Path) -> RowLog {
    RowLog::create(&HeldDir::trusted(dir).unwrap(), 3, &CulpritTable::default()).unwrap()
}

fn read(bytes: &[u8]) -> Vec<StoredRow> {
    RowLogReader::new(bytes, 3).collect()
}

fn stall(id: u64, tid: i32) -> Stall {
    let victim = ThreadRef {
        tid,
        comm: Comm::new(&format!("js-{tid}")),
    };
    Stall {
        id: StallId(id),
        cpu: CpuId(id as u32 % 3),
        victim,
        start: Ticks(1_000 + id * 77),
        end: Ticks(1_000 + id * 77 + id % 50),
    }
}

fn part(n: u64) -> Part {
    let culprit = Culprit {
        subject: Subject::Call(format!("function_{}", n % 40).as_str().into()),
        sender: None,
    };
    Part {
        gross: Nanos(n / 2 * 3),
        turns: 1 + (n % 3) as u32,
        moved_from: n.is_multiple_of(5).then_some(CpuId(7)),
        others_stalled: n.is_multiple_of(7).then_some(2),
        ..Part::inside(culprit, Nanos(n), Evidence::LostRecords)
    }
}

/// Writes stalls with their parts and an interval for every ten of them, a batch for every `each` stalls. Returns the
/// file and its rows, by batch.
fn written(stalls: u64, each: u64) -> (Vec<u8>, Vec<Vec<StoredRow>>) {
    let dir = tempfile::tempdir().unwrap();
    let mut log = log(dir.path());
    let mut table = CulpritTable::default();
    let (mut batches, mut rows) = (Vec::new(), Vec::new());
    for id in 0..stalls {
        let stall = stall(id, 7 - (id / 4 % 9) as i32);
        log.stall(&stall);
        rows.push(StoredRow::Stall(stall));
        if !id.is_multiple_of(6) {
            let parts = (0..id % 4).map(|n| part(id * 13 + n)).collect();
            let attribution = Attribution {
                stall: stall.id,
                parts,
            };
            log.attribution(&attribution);
            for part in &attribution.parts {
                let (culprit, remark) = (table.culprit(&part.culprit), table.remark(part));
                if let Some(row) = &culprit.new {
                    log.culprit(culprit.id, row);
                }
                if let Some(row) = &remark.new {
                    log.remark(remark.id, row);
                }
                log.part(culprit.id, remark.id, part);
            }
            rows.push(StoredRow::Attribution(attribution));
        }
        if id % 10 == 9 {
            let row = IntervalRow {
                cpu: CpuId(1),
                start: Ticks(id),
                end: Ticks(id * 2),
                count: id,
                max: Nanos(u64::MAX),
                stolen: Nanos(id),
            };
            log.interval(&row);
            rows.push(StoredRow::Interval(row));
        }
        if id % each == each - 1 {
            log.flush().unwrap();
            batches.push(std::mem::take(&mut rows));
        }
    }
    (fs::read(dir.path().join(ROWS)).unwrap(), batches)
}

#[test]
fn all_rows_come_back_in_their_order() {
    for each in [1, 5, 300] {
        let (bytes, batches) = written(300, each);
        assert_eq!(batches.len() as u64, 300 / each);
        assert_eq!(read(&bytes), batches.concat());
    }
}

#[test]
fn extreme_numbers_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = log(dir.path());
    let victim = ThreadRef {
        tid: i32::MIN,
        comm: Comm::default(),
    };
    let stalls =
        [(u64::MAX, 0, u64::MAX), (0, u64::MAX, u64::MAX), (1, 5, 5)].map(|(id, start, end)| {
            Stall {
                id: StallId(id),
                cpu: CpuId(u32::MAX),
                victim,
                start: Ticks(start),
                end: Ticks(end),
            }
        });
    stalls.iter().for_each(|stall| log.stall(stall));
    log.flush().unwrap();
    let rows = read(&fs::read(dir.path().join(ROWS)).unwrap());
    assert_eq!(rows, stalls.map(StoredRow::Stall));
}

#[test]
fn a_log_cut_off_anywhere_gives_the_batches_that_are_whole() {
    let (bytes, batches) = written(40, 5);
    let ends = ends(&bytes);
    assert_eq!(ends.len(), batches.len());
    for length in 0..=bytes.len() {
        let whole = ends.iter().filter(|end| **end <= length).count();
        assert_eq!(
            read(&bytes[..length]),
            batches[..whole].concat(),
            "{length}"
        );
    }
}

#[test]
fn a_flipped_bit_ends_the_log_at_its_batch() {
    let (bytes, batches) = written(40, 5);
    let ends = ends(&bytes);
    for at in 0..bytes.len() {
        for bit in [0, 7] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let whole = match at < BEGIN {
                true => 0,
                false => ends.iter().filter(|end| **end <= at).count(),
            };
            assert_eq!(read(&damaged), batches[..whole].concat(), "{at}");
        }
    }
}

#[test]
fn the_next_log_replaces_the_one_before_and_knows_its_culprits() {
    let dir = tempfile::tempdir().unwrap();
    let held = HeldDir::trusted(dir.path()).unwrap();
    let mut table = CulpritTable::default();
    let numbers: Vec<_> = (0..10)
        .map(|n| {
            let part = part(n);
            (
                table.culprit(&part.culprit).id,
                table.remark(&part).id,
                part,
            )
        })
        .collect();
    let first = RowLog::create(&held, 0, &CulpritTable::default()).unwrap();
    let mut log = RowLog::create(&held, first.next(), &table).unwrap();
    let stall = stall(1, 7);
    let parts = numbers.iter().map(|(.., part)| part.clone()).collect();
    let attribution = Attribution {
        stall: stall.id,
        parts,
    };
    log.stall(&stall);
    log.attribution(&attribution);
    for (culprit, remark, part) in &numbers {
        log.part(*culprit, *remark, part);
    }
    log.flush().unwrap();
    let bytes = fs::read(dir.path().join(ROWS)).unwrap();
    let wanted = [StoredRow::Stall(stall), StoredRow::Attribution(attribution)];
    let rows = |number| RowLogReader::new(&bytes[..], number).collect::<Vec<_>>();
    assert_eq!(rows(1), wanted);
    assert_eq!(rows(0), []);
    assert_eq!(log.bytes() as usize, bytes.len() - BEGIN);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

/// Where each batch ends.
fn ends(bytes: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut at = BEGIN;
    while at < bytes.len() {
        let length = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        at += HEADER + length as usize;
        ends.push(at);
    }
    ends
}

fn sealed(payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_le_bytes();
    let sum = crc32fast::hash(payload).to_le_bytes();
    [&MAGIC[..], &[3, 0, 0, 0], &length, &sum, payload].concat()
}

#[test]
fn a_batch_that_claims_more_than_there_is_takes_no_memory_for_it() {
    for length in [1_u32, LARGEST as u32, LARGEST as u32 + 1, u32::MAX] {
        let bytes = [&MAGIC[..], &[3, 0, 0, 0], &length.to_le_bytes(), &[0; 4]].concat();
        assert_eq!(read(&bytes), []);
    }
    // A name that claims all of memory, within a batch whose checksum is right.
    let payload = [STALL_OF_OTHER, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x7f];
    assert_eq!(read(&sealed(&payload)), []);
}

#[test]
fn a_stall_that_fits_no_batch_is_refused_and_what_it_took_is_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = log(dir.path());
    let row = part(1);
    while log.waiting() <= 4 * BATCH {
        log.part(CulpritId(u32::MAX), RemarkId(0), &row);
    }
    log.flush().unwrap();
    assert!(log.waiting() <= HEADER);
    let most = LARGEST / 4;
    while log.waiting() <= LARGEST + HEADER {
        let name = Subject::Call("x".repeat(most).as_str().into());
        log.culprit(CulpritId(0), &name.into());
    }
    assert!(log.flush().is_err());
}

proptest! {
    #[test]
    fn no_content_of_a_batch_makes_the_reader_panic(
        payload in proptest::collection::vec(
            prop_oneof![0u8..8, Just(PART), Just(PART | HAS_REMARK), any::<u8>()], 0..200),
    ) {
        let _ = read(&sealed(&payload));
    }

    #[test]
    fn bytes_that_are_changed_under_a_right_checksum_make_no_panic(at: usize, to: u8) {
        let (bytes, _) = written(20, 20);
        let mut payload = bytes[BEGIN + HEADER..].to_vec();
        let at = at % payload.len();
        payload[at] = to;
        let _ = read(&sealed(&payload));
    }
}
