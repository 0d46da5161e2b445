//! Tests on files that are made here, byte for byte, and on damaged ones.

use super::*;
use crate::ring::Page;
use jitterscope_model::{Comm, CpuId};
use proptest::prelude::*;

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
const FORMAT: &str = "name: sched_switch\nID: 316\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n";
/// TID, TIME, CPU, PERIOD, RAW, IDENTIFIER.
const SAMPLE: u64 = 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 16;
const NUMBER: u64 = 77;

fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(0u16.to_le_bytes());
    bytes.extend((body.len() as u16 + 8).to_le_bytes());
    bytes.extend(body);
    bytes
}

fn sample(time: u64, cpu: u32, raw: &[u8]) -> Vec<u8> {
    let mut body = NUMBER.to_le_bytes().to_vec();
    body.extend([5u32.to_le_bytes(), 6u32.to_le_bytes()].concat());
    body.extend(time.to_le_bytes());
    body.extend(u64::from(cpu).to_le_bytes());
    body.extend(1u64.to_le_bytes());
    body.extend((raw.len() as u32).to_le_bytes());
    body.extend(raw);
    record(9, &body)
}

/// The record of lost ones, with the fields of `sample_id_all`.
fn lost(time: u64, cpu: u32, count: u64) -> Vec<u8> {
    let mut body = [NUMBER.to_le_bytes(), count.to_le_bytes()].concat();
    body.extend([5u32.to_le_bytes(), 6u32.to_le_bytes()].concat());
    body.extend(time.to_le_bytes());
    body.extend(u64::from(cpu).to_le_bytes());
    body.extend(NUMBER.to_le_bytes());
    record(2, &body)
}

fn renamed(tid: i32, name: &str) -> Vec<u8> {
    let mut body = [tid.to_le_bytes(), tid.to_le_bytes()].concat();
    body.extend(name.as_bytes());
    body.push(0);
    body.resize(body.len().next_multiple_of(8), 0);
    record(3, &body)
}

fn round() -> Vec<u8> {
    record(68, &[])
}

fn tracing() -> Vec<u8> {
    let mut bytes = b"\x17\x08\x44tracing0.6\0\x00\x08".to_vec();
    bytes.extend(4096u32.to_le_bytes());
    for (mark, text) in [
        (&b"header_page\0"[..], HEADER_PAGE),
        (b"header_event\0", "x"),
    ] {
        bytes.extend(mark);
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.as_bytes());
    }
    bytes.extend(0u32.to_le_bytes());
    bytes.extend(1u32.to_le_bytes());
    bytes.extend(b"sched\0");
    bytes.extend(1u32.to_le_bytes());
    bytes.extend((FORMAT.len() as u64).to_le_bytes());
    bytes.extend(FORMAT.as_bytes());
    let kallsyms = "ffffffff81000000 T schedule\n";
    bytes.extend((kallsyms.len() as u32).to_le_bytes());
    bytes.extend(kallsyms.as_bytes());
    bytes.extend(0u32.to_le_bytes());
    let threads = "12 bash\n";
    bytes.extend((threads.len() as u64).to_le_bytes());
    bytes.extend(threads.as_bytes());
    bytes
}

/// A whole file of these records.
fn file(records: &[Vec<u8>]) -> Vec<u8> {
    let data = records.concat();
    let attributes_at = 104 + 8;
    let data_at = attributes_at + 144;
    let tracing = tracing();
    let host = b"\x08\0\0\0box\0\0\0\0\0";
    let tables_at = data_at + data.len() as u64;
    let mut bytes = b"PERFILE2".to_vec();
    for word in [
        104,
        144,
        attributes_at,
        144,
        data_at,
        data.len() as u64,
        0,
        0,
    ] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend([1u64 << 1 | 1 << 3, 0, 0, 0].map(u64::to_le_bytes).concat());
    bytes.extend(NUMBER.to_le_bytes());
    // The attributes: a tracepoint, with CLOCK_MONOTONIC.
    let mut attribute = vec![0; 128];
    attribute[..4].copy_from_slice(&2u32.to_le_bytes());
    attribute[4..8].copy_from_slice(&128u32.to_le_bytes());
    attribute[24..32].copy_from_slice(&SAMPLE.to_le_bytes());
    attribute[40..48].copy_from_slice(&(1u64 << 18 | 1 << 25).to_le_bytes());
    attribute[92..96].copy_from_slice(&1u32.to_le_bytes());
    bytes.extend(attribute);
    bytes.extend([104u64, 8].map(u64::to_le_bytes).concat());
    bytes.extend(data);
    let tracing_at = tables_at + 32;
    let sections = [
        tracing_at,
        tracing.len() as u64,
        tracing_at + tracing.len() as u64,
        host.len() as u64,
    ];
    bytes.extend(sections.map(u64::to_le_bytes).concat());
    bytes.extend(tracing);
    bytes.extend(host);
    bytes
}

fn read(bytes: &[u8]) -> Result<PerfData, PerfDataError> {
    let pages = tempfile::tempfile().unwrap();
    open(&bytes.to_vec(), pages, &AtomicBool::new(false))
}

/// CPU, time and first bytes of every record, in the order of the pages; and losses.
fn found(data: &PerfData) -> (Vec<(u32, u64, u32)>, u64) {
    let layout = PageLayout::parse(&data.dat.header_page).unwrap();
    let (mut all, mut lost) = (Vec::new(), 0);
    for buffer in &data.dat.buffers {
        for cpu in &buffer.cpus {
            let mut pages = data.dat.pages(buffer, cpu, 1 << 16);
            while let Some(page) = pages.peek().unwrap() {
                let page = Page::parse(&layout, page).unwrap();
                if let crate::ring::PageLoss::Lost(count) = page.loss() {
                    lost += count;
                }
                for record in page.records() {
                    let first = record
                        .data
                        .first_chunk()
                        .copied()
                        .map_or(0, u32::from_le_bytes);
                    all.push((cpu.cpu.0, record.time.0, first));
                }
                pages.pass();
            }
            assert_eq!(pages.gaps(), 0);
        }
    }
    (all, lost)
}

fn usual() -> Vec<Vec<u8>> {
    let raw = |n: u32| [n.to_le_bytes(), [0; 4]].concat();
    vec![
        renamed(9, "worker"),
        sample(1000, 0, &raw(1)),
        sample(3000, 0, &raw(3)),
        sample(2000, 1, &raw(2)),
        round(),
        lost(3500, 0, 7),
        sample(4000, 0, &raw(4)),
        sample(2500, 1, &raw(5)),
        round(),
    ]
}

#[test]
fn samples_become_pages_in_order_of_time() {
    let data = read(&file(&usual())).unwrap();
    let (records, lost) = found(&data);
    let expected = [
        (0, 1000, 1),
        (0, 3000, 3),
        (0, 4000, 4),
        (1, 2000, 2),
        (1, 2500, 5),
    ];
    assert_eq!((&records[..], lost), (&expected[..], 7));
    assert_eq!(
        (data.cut, data.disordered, data.without_bytes),
        (false, 0, 0)
    );
    let dat = &data.dat;
    assert_eq!(dat.options.clock.as_deref(), Some("mono"));
    assert_eq!(dat.options.uname.as_deref(), Some("Linux box  "));
    assert_eq!(
        dat.threads,
        [(12, Comm::new("bash")), (9, Comm::new("worker"))]
    );
    assert_eq!(dat.formats.len(), 1);
    assert!(dat.functions.is_ok());
    assert_eq!(dat.options.overrun, 7);
}

#[test]
fn many_records_fill_many_pages() {
    let records: Vec<Vec<u8>> = (0..20_000u32)
        .map(|n| {
            sample(
                1000 + u64::from(n) * 100,
                n % 3,
                &[&n.to_le_bytes()[..], &[7; 60]].concat(),
            )
        })
        .collect();
    let data = read(&file(&records)).unwrap();
    let (mut records, _) = found(&data);
    records.sort_by_key(|(_, time, _)| *time);
    let expected = (0..20_000u32).map(|n| (n % 3, 1000 + u64::from(n) * 100, n));
    assert!(records.into_iter().eq(expected));
    let last = data
        .dat
        .last_page(&data.dat.buffers[0], &data.dat.buffers[0].cpus[2])
        .unwrap();
    let layout = PageLayout::parse(HEADER_PAGE).unwrap();
    let (_, last) = Page::parse(&layout, &last.unwrap())
        .unwrap()
        .time_range()
        .unwrap();
    assert_eq!(last.0, 1000 + 1_999_900 - 100 * ((19_999 + 3 - 2) % 3));
}

#[test]
fn what_follows_damage_is_missing_and_what_precedes_it_is_read() {
    let mut records = usual();
    records.insert(3, vec![0; 8]);
    let data = read(&file(&records)).unwrap();
    assert!(data.cut);
    assert_eq!(found(&data).0, [(0, 1000, 1), (0, 3000, 3)]);
}

#[test]
fn each_unreadable_file_says_what_it_is() {
    let whole = file(&usual());
    let error = |bytes: &[u8]| read(bytes).err().unwrap().to_string();
    let mut stream = b"PERFILE2".to_vec();
    stream.extend(16u64.to_le_bytes());
    assert!(error(&stream).contains("perf inject"), "{}", error(&stream));
    let mut big = whole.clone();
    big[..8].copy_from_slice(MAGIC_BIG_ENDIAN);
    assert!(error(&big).contains("big-endian"));
    let compressed = file(&[record(81, &[0; 16])]);
    assert!(error(&compressed).contains("without -z"));
    let cut = &whole[..whole.len() - 300];
    assert!(error(cut).contains("cut off"), "{}", error(cut));
    let mut killed = whole.clone();
    killed[48..56].copy_from_slice(&0u64.to_le_bytes());
    assert!(error(&killed).contains("killed"), "{}", error(&killed));
    let attribute = 104 + 8;
    let mut other = whole.clone();
    other[attribute] = 1;
    assert!(error(&other).contains("without tracepoints"));
    for (bit, what) in [
        (7, "no CPU"),
        (2, "no time"),
        (10, "no bytes of their tracepoints"),
    ] {
        let mut other = whole.clone();
        let at = attribute + 24 + bit / 8;
        other[at] &= !(1 << (bit % 8));
        assert!(error(&other).contains(what), "{what}: {}", error(&other));
    }
    let stop = AtomicBool::new(true);
    let many = file(&vec![sample(1, 0, &[0; 8]); 5000]);
    let stopped = open(&many, tempfile::tempfile().unwrap(), &stop);
    assert!(matches!(stopped, Err(PerfDataError::Stopped)));
}

#[test]
fn a_cpu_that_cannot_be_and_a_record_longer_than_a_page_are_left_out() {
    let records = [
        sample(1, u32::MAX, &[1; 8]),
        sample(2, 0, &[2; 5000]),
        sample(3, 0, &[3; 8]),
    ];
    let data = read(&file(&records)).unwrap();
    assert_eq!(found(&data), (vec![(0, 3, 0x0303_0303)], 1));
    assert_eq!(data.dat.buffers[0].cpus[0].cpu, CpuId(0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn no_damage_makes_it_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut bytes = file(&usual());
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(data) = read(&bytes) {
            found(&data);
        }
    }
}
