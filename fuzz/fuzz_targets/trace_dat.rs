//! Any bytes as a `trace.dat`: its descriptions, and every page of it through the decoder that these describe. The
//! corpus begins with small whole files of versions 6 and 7, plain and compressed.
#![no_main]

use jitterscope_model::{ClockKind, Ticks};
use jitterscope_source::tracedat::{TraceDat, least_memory};
use jitterscope_source::{Decoder, Page, PageLayout, TraceContext};
use libfuzzer_sys::fuzz_target;

/// What the pages of a CPU may hold in memory, bytes.
const MEMORY: usize = 64 << 10;

fuzz_target!(|bytes: &[u8]| {
    let Ok(dat) = TraceDat::open(bytes.to_vec()) else {
        return;
    };
    let context = TraceContext {
        header_page: dat.header_page.clone(),
        formats: dat.formats.clone(),
        clock: ClockKind::MonotonicRaw,
        symbols: Default::default(),
        tasks: Default::default(),
        setup: Vec::new(),
    };
    let layout = PageLayout::parse(&dat.header_page).ok();
    let mut decoder = Decoder::new(&context).ok();
    for buffer in &dat.buffers {
        for data in &buffer.cpus {
            let mut pages = dat.pages(buffer, data, MEMORY);
            let (mut read, mut last) = (0_u64, None);
            while let Some(page) = pages.peek().expect("bytes can be read") {
                assert!(page.len() as u64 <= u64::from(buffer.page_size.max(1)));
                read += page.len() as u64;
                if let Some(decoder) = &mut decoder {
                    let mut before = Ticks(0);
                    let _ = decoder.page(data.cpu, page, |event| before = before.max(event.time));
                }
                if let Some(layout) = &layout {
                    assert!(Page::used(layout, page) <= page.len());
                }
                last = Some(page.to_vec());
                pages.pass();
            }
            // A frame of zstd or zlib expands to a chunk, and no further.
            let most = (bytes.len() as u64).saturating_mul(least_memory(buffer.page_size).max(1));
            assert!(read <= most.max(1 << 20));
            let found = dat.last_page(buffer, data).expect("bytes can be read");
            // A last chunk may have no page.
            if pages.gaps() == 0 && found.is_some() {
                assert_eq!(found, last);
            }
        }
    }
});
