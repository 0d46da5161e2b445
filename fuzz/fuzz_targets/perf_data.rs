//! Any bytes as a `perf.data`: its descriptions, its samples as pages, and every page through the decoder that the
//! descriptions make. The corpus begins with a small whole file.
#![no_main]

use jitterscope_model::{ClockKind, Ticks};
use jitterscope_source::{Decoder, TraceContext, perfdata};
use libfuzzer_sys::fuzz_target;
use std::fs::File;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

/// What the pages of a CPU may hold in memory, bytes.
const MEMORY: usize = 64 << 10;

/// The file of pages, used again for each input.
static PAGES: LazyLock<File> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("perf-data-pages-{}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path);
    std::fs::remove_file(&path).expect("it was made here");
    file.expect("the temporary folder takes files")
});

fuzz_target!(|bytes: &[u8]| {
    let pages = PAGES.try_clone().expect("a file has a second handle");
    let Ok(read) = perfdata::open(&bytes, pages, &AtomicBool::new(false)) else {
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
    let mut decoder = Decoder::new(&context).ok();
    for buffer in &dat.buffers {
        for data in &buffer.cpus {
            let mut pages = dat.pages(buffer, data, MEMORY);
            let mut before = Ticks(0);
            while let Some(page) = pages.peek().expect("pages can be read") {
                if let Some(decoder) = &mut decoder {
                    let _ = decoder.page(data.cpu, page, |event| {
                        assert!(event.time >= before, "pages are in order of time");
                        before = event.time;
                    });
                }
                pages.pass();
            }
            assert_eq!(pages.gaps(), 0, "our own pages are whole");
        }
    }
});
