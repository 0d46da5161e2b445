//! Any bytes as a CTF trace: its metadata, its events as pages, and every page through the decoder that the metadata make.
//! The first four bytes say how long the metadata are; the rest is two files of events, whose border the next four say.
//! The corpus begins with small whole traces of both byte orders.
#![no_main]

use jitterscope_model::{ClockKind, Ticks};
use jitterscope_source::tracedat::ReadAt;
use jitterscope_source::{Decoder, TraceContext, ctf};
use libfuzzer_sys::fuzz_target;
use std::fs::File;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

/// What the pages of a CPU may hold in memory, bytes.
const MEMORY: usize = 64 << 10;

/// The file of pages, used again for each input.
static PAGES: LazyLock<File> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("ctf-pages-{}", std::process::id()));
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path);
    std::fs::remove_file(&path).expect("it was made here");
    file.expect("the temporary folder takes files")
});

fuzz_target!(|bytes: &[u8]| {
    let Some((head, rest)) = bytes.split_first_chunk::<8>() else {
        return;
    };
    let part = |at: usize| {
        u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize
    };
    let (metadata, events) = rest.split_at(part(0).min(rest.len()));
    let (first, second) = events.split_at(part(4).min(events.len()));
    let streams: [Box<dyn ReadAt>; 2] = [Box::new(first.to_vec()), Box::new(second.to_vec())];
    let pages = PAGES.try_clone().expect("a file has a second handle");
    let Ok(read) = ctf::open(metadata, &streams, pages, &AtomicBool::new(false)) else {
        return;
    };
    let dat = read.dat;
    let context = TraceContext {
        header_page: dat.header_page.clone(),
        formats: dat.formats.clone(),
        clock: ClockKind::MonotonicRaw,
        symbols: Default::default(),
        tasks: Default::default(),
        setup: Vec::new(),
    };
    let mut decoder = Decoder::new(&context).expect("our own formats can be read");
    for buffer in &dat.buffers {
        for data in &buffer.cpus {
            let mut pages = dat.pages(buffer, data, MEMORY);
            let mut before = Ticks(0);
            while let Some(page) = pages.peek().expect("pages can be read") {
                let _ = decoder.page(data.cpu, page, |event| {
                    assert!(event.time >= before, "pages are in order of time");
                    before = event.time;
                });
                pages.pass();
            }
            assert_eq!(pages.gaps(), 0, "our own pages are whole");
        }
    }
    assert_eq!(decoder.counts().malformed, 0, "our own records are whole");
});
