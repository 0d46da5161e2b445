//! What the targets for other tools' traces share.

use jitterscope_model::{ClockKind, Ticks};
use jitterscope_source::tracedat::TraceDat;
use jitterscope_source::{Decoder, TraceContext};
use std::fs::File;
use std::sync::LazyLock;

/// What the pages of a CPU may hold in memory, bytes.
const MEMORY: usize = 64 << 10;

/// The file of pages, used again for each input.
static PAGES: LazyLock<File> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("fuzz-pages-{}", std::process::id()));
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path);
    std::fs::remove_file(&path).expect("it was made here");
    file.expect("the temporary folder takes files")
});

/// A file for the pages that a reader makes.
pub fn pages() -> File {
    PAGES.try_clone().expect("a file has a second handle")
}

/// Decodes every page. They are in order of time, and whole, because we made them. Returns the number of records that
/// cannot be decoded; `None` if the formats cannot be read.
pub fn decode(dat: &TraceDat) -> Option<u64> {
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
    decoder.map(|decoder| decoder.counts().malformed)
}
