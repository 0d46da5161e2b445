//! Files made here, whole and broken. The files of trace-cmd itself are in the command's tests.

use super::*;
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
const SWITCH: &str = "name: sched_switch\nID: 315\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:pid_t next_pid;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n";
const KALLSYMS: &str = "ffffffff81000000 T first_function\nffffffff81000100 t second_function\n";
const PAGE: usize = 4096;

/// A page with its base time and nothing in it.
fn page(base: u64) -> Vec<u8> {
    let mut page = vec![0; PAGE];
    page[..8].copy_from_slice(&base.to_le_bytes());
    page
}

fn sized_64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend(bytes);
}

fn sized_32(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(bytes);
}

fn header_info() -> Vec<u8> {
    let mut out = b"header_page\0".to_vec();
    sized_64(&mut out, HEADER_PAGE.as_bytes());
    out.extend(b"header_event\0");
    sized_64(&mut out, b"# compressed entry header\n");
    out
}

fn event_formats() -> Vec<u8> {
    let mut out = 2u32.to_le_bytes().to_vec();
    for (system, text) in [
        ("sched", SWITCH.to_owned()),
        ("kvm", SWITCH.replace("sched_switch", "kvm_exit")),
    ] {
        out.extend(system.as_bytes());
        out.push(0);
        out.extend(1u32.to_le_bytes());
        sized_64(&mut out, text.as_bytes());
    }
    out
}

fn option(out: &mut Vec<u8>, id: u16, value: &[u8]) {
    out.extend(id.to_le_bytes());
    sized_32(out, value);
}

fn plain_options(out: &mut Vec<u8>) {
    option(out, 9, b"maker 1.2\0");
    option(out, 2, b"CPU: 0\noverrun: 3\ndropped events: 4\n\0");
    option(out, 99, b"of another time");
}

/// A file of version 6 with these pages for each CPU.
fn version_6(cpus: &[Vec<Vec<u8>>]) -> Vec<u8> {
    let mut out = b"\x17\x08\x44tracing6\0\0\x08".to_vec();
    out.extend((PAGE as u32).to_le_bytes());
    out.extend(header_info());
    out.extend(0u32.to_le_bytes());
    out.extend(event_formats());
    sized_32(&mut out, KALLSYMS.as_bytes());
    sized_32(&mut out, b"");
    sized_64(&mut out, b"7 seven\n8 <...>\n");
    out.extend((cpus.len() as u32).to_le_bytes());
    out.extend(b"options  \0");
    plain_options(&mut out);
    // The clock is not in its option, but after the table.
    option(&mut out, 4, b"");
    out.extend(0u16.to_le_bytes());
    out.extend(b"flyrecord\0");
    let clock = b"local [mono] boot";
    let mut next = out.len() + 16 * cpus.len() + 8 + clock.len();
    for pages in cpus {
        let size = pages.len() * PAGE;
        out.extend((next as u64).to_le_bytes());
        out.extend((size as u64).to_le_bytes());
        next += size;
    }
    sized_64(&mut out, clock);
    out.extend(cpus.iter().flatten().flatten());
    out
}

fn section(out: &mut Vec<u8>, id: u16, bytes: &[u8], zstd: bool) -> u64 {
    let place = out.len() as u64;
    out.extend(id.to_le_bytes());
    out.extend(u16::from(zstd).to_le_bytes());
    out.extend(0u32.to_le_bytes());
    if zstd {
        let packed = compress_to_vec(bytes, CompressionLevel::Fastest);
        out.extend((packed.len() as u64 + 8).to_le_bytes());
        out.extend((packed.len() as u32).to_le_bytes());
        out.extend((bytes.len() as u32).to_le_bytes());
        out.extend(packed);
    } else {
        sized_64(out, bytes);
    }
    place
}

/// A file of version 7 with these pages for each CPU, two pages in a chunk.
fn version_7(cpus: &[Vec<Vec<u8>>], zstd: bool) -> Vec<u8> {
    let mut out = b"\x17\x08\x44tracing7\0\0\x08".to_vec();
    out.extend((PAGE as u32).to_le_bytes());
    out.extend(if zstd {
        &b"zstd\x001.5\0"[..]
    } else {
        b"none\0\0"
    });
    let first_options = out.len();
    out.extend(0u64.to_le_bytes());
    let mut options = Vec::new();
    plain_options(&mut options);
    let mut named = |out: &mut Vec<u8>, id: u16, bytes: &[u8]| {
        let place = section(out, id, bytes, zstd);
        option(&mut options, id, &place.to_le_bytes());
    };
    named(&mut out, 16, &header_info());
    named(&mut out, 18, &event_formats());
    let mut functions = Vec::new();
    sized_32(&mut functions, KALLSYMS.as_bytes());
    named(&mut out, 19, &functions);
    let mut threads = Vec::new();
    sized_64(&mut threads, b"7 seven\n");
    named(&mut out, 21, &threads);
    let buffer = section(&mut out, 3, b"", false);
    if zstd {
        // Its flag, without a compressed body of its own.
        out[buffer as usize + 2] = 1;
    }
    let mut value = buffer.to_le_bytes().to_vec();
    value.extend(b"\0local [mono] boot\0");
    value.extend((PAGE as u32).to_le_bytes());
    value.extend((cpus.len() as u32).to_le_bytes());
    for (cpu, pages) in cpus.iter().enumerate() {
        let place = out.len();
        if zstd && !pages.is_empty() {
            out.extend((pages.chunks(2).len() as u32).to_le_bytes());
            for chunk in pages.chunks(2) {
                let packed = compress_to_vec(chunk.concat().as_slice(), CompressionLevel::Fastest);
                out.extend((packed.len() as u32).to_le_bytes());
                out.extend(((chunk.len() * PAGE) as u32).to_le_bytes());
                out.extend(packed);
            }
        } else {
            out.extend(pages.concat());
        }
        value.extend((cpu as u32).to_le_bytes());
        value.extend((place as u64).to_le_bytes());
        value.extend(((out.len() - place) as u64).to_le_bytes());
    }
    option(&mut options, 3, &value);
    // The rest of the options is in another section.
    let mut more = Vec::new();
    option(&mut more, 5, b"Linux box 6.1 x86_64\0");
    option(&mut more, 0, &0u64.to_le_bytes());
    let more = section(&mut out, 0, &more, zstd);
    option(&mut options, 0, &more.to_le_bytes());
    let place = section(&mut out, 0, &options, zstd);
    out[first_options..first_options + 8].copy_from_slice(&place.to_le_bytes());
    out
}

fn every_form(cpus: &[Vec<Vec<u8>>]) -> [Vec<u8>; 3] {
    [
        version_6(cpus),
        version_7(cpus, false),
        version_7(cpus, true),
    ]
}

/// The base times of the pages of each CPU, and whether some are missing.
fn bases(dat: &TraceDat) -> Vec<(Vec<u64>, bool)> {
    let buffer = &dat.buffers[0];
    let of_cpu = |data: &CpuData| {
        let mut pages = dat.pages(buffer, data, 3 * PAGE);
        let mut bases = Vec::new();
        while let Some(page) = pages.peek().unwrap() {
            bases.push(
                page.first_chunk()
                    .map_or(0, |base| u64::from_le_bytes(*base)),
            );
            pages.pass();
        }
        (bases, pages.gaps() > 0)
    };
    buffer.cpus.iter().map(of_cpu).collect()
}

fn two_cpus() -> Vec<Vec<Vec<u8>>> {
    vec![
        (0..7).map(|n| page(100 + n)).collect(),
        Vec::new(),
        vec![page(55)],
    ]
}

#[test]
fn each_form_of_a_file_says_the_same() {
    for (bytes, version) in every_form(&two_cpus()).into_iter().zip([6, 7, 7]) {
        let dat = TraceDat::open(bytes).unwrap();
        assert_eq!(dat.version, version);
        assert_eq!(dat.header_page, HEADER_PAGE);
        let formats: Vec<_> = dat.formats.iter().map(|of| of.event.as_str()).collect();
        assert_eq!(formats, ["sched_switch"], "others are not read");
        let named = dat.functions.as_ref().unwrap();
        let address = jitterscope_model::KernelAddr(0xffff_ffff_8100_0010);
        assert_eq!(named.name(address), Some("first_function"));
        assert_eq!(dat.threads, [(7, Comm::new("seven"))]);
        assert_eq!(dat.options.program.as_deref(), Some("maker 1.2"));
        assert_eq!(dat.options.overrun, 7);
        let clock = dat.buffers[0].clock.clone().or(dat.options.clock.clone());
        assert_eq!(clock.as_deref(), Some("mono"), "version {version}");
        let cpus: Vec<u32> = dat.buffers[0].cpus.iter().map(|data| data.cpu.0).collect();
        assert_eq!(cpus, [0, 2], "a CPU without pages is left out");
        let expected = [((100..107).collect(), false), (vec![55], false)];
        assert_eq!(bases(&dat), expected);
        let last = dat.last_page(&dat.buffers[0], &dat.buffers[0].cpus[0]);
        assert_eq!(last.unwrap().unwrap()[0], 106);
    }
}

#[test]
fn what_is_cut_off_costs_only_itself() {
    for bytes in every_form(&[(0..4).map(|n| page(100 + n)).collect()]) {
        let mut found = Vec::new();
        for cut in 1..(2 * PAGE).min(bytes.len()) {
            let mut bytes = bytes.clone();
            bytes.truncate(bytes.len() - cut);
            // The options of version 7 are at its end.
            let Ok(dat) = TraceDat::open(bytes) else {
                continue;
            };
            let [(bases, missing)] = &bases(&dat)[..] else {
                panic!("one CPU");
            };
            assert!(*missing, "{cut}");
            let whole = (4 - cut.div_ceil(PAGE)) as u64;
            assert!(bases.len() as u64 >= whole && bases[0] == 100);
            found.push(bases.len());
        }
        assert!(found.is_empty() || found.len() == 2 * PAGE - 1);
    }
}

#[test]
fn a_chunk_that_cannot_be_expanded_costs_only_its_pages() {
    let bytes = version_7(&[(0..6).map(|n| page(100 + n)).collect()], true);
    let dat = TraceDat::open(bytes.clone()).unwrap();
    let at = dat.buffers[0].cpus[0].at as usize;
    let first = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
    let mut damaged = bytes;
    // In the second chunk: the magic number of its frame.
    damaged[at + 4 + 8 + first + 8] ^= 0xff;
    let dat = TraceDat::open(damaged).unwrap();
    assert_eq!(bases(&dat), [(vec![100, 101, 104, 105], true)]);
}

#[test]
fn what_is_not_read_is_recognised() {
    let said = |bytes: &[u8]| TraceDat::open(bytes.to_vec()).err().unwrap().to_string();
    for (bytes, word) in [
        (&b""[..], "empty"),
        (b"PERFILE2 and so on", "perf.data"),
        (b"\xc1\x1f\xfc\xc1 and so on", "CTF"),
        (b"\x1f\x8b and so on", "unpack"),
        (b"# tracer: nop\n", "no pages"),
        (b"a letter to a friend", "a text"),
        (b"\x17\x08\x44trac", "not of a format"),
        (b"\x17\x08\x44tracing8\0\0\x08", "version '8'"),
        (b"\x17\x08\x44tracing6\0\x01\x08\0\0\x10\0", "big-endian"),
        (
            b"\x17\x08\x44tracing6\0\x02\x08\0\x10\0\0",
            "byte order says 2",
        ),
        (b"\x17\x08\x44tracing6\0\0\x08\0\0\0\x7f", "page size"),
        (b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0lz4\x001\0", "lz4"),
        (
            b"\x17\x08\x44tracing6\0\0\x08\0\x10\0\0header_page\0",
            "cut off",
        ),
    ] {
        let text = said(bytes);
        assert!(text.contains(word), "{word}: {text}");
    }
    let text_only = {
        let mut bytes = version_6(&[]);
        let table = bytes
            .windows(10)
            .position(|mark| mark == b"flyrecord\0")
            .unwrap();
        bytes[table..table + 10].copy_from_slice(b"latency  \0");
        bytes
    };
    assert!(said(&text_only).contains("only text"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_file_makes_it_panic_or_read_without_end(
        form in 0usize..3,
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = every_form(&two_cpus())[form].clone();
        for (place, byte) in &places {
            let at = place.index(bytes.len());
            bytes[at] = *byte;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        if let Ok(dat) = TraceDat::open(bytes) {
            for buffer in &dat.buffers {
                for data in &buffer.cpus {
                    let mut pages = dat.pages(buffer, data, 3 * PAGE);
                    let mut count = 0;
                    while pages.peek().unwrap().is_some() {
                        pages.pass();
                        count += 1;
                        prop_assert!(count < 1 << 16);
                    }
                    let _ = dat.last_page(buffer, data).unwrap();
                }
            }
        }
    }
}
