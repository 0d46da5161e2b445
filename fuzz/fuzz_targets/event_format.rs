//! Any text as an event's format and as a page layout, then any bytes through what came of it.
#![no_main]

use jitterscope_source::format::EventFormat;
use jitterscope_source::ring::PageLayout;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &[u8])| {
    let (text, bytes) = input;
    if let Ok(layout) = PageLayout::parse(text) {
        assert!(layout.header_size() < layout.page_size());
    }
    let Ok(format) = EventFormat::parse("sched", "sched_switch", text) else {
        return;
    };
    for name in [
        "common_type",
        "common_pid",
        "a",
        "prev_comm",
        "cpu",
        format.name(),
    ] {
        let _ = format.number(name).i64(bytes);
        let field = format.bytes(name);
        let _ = (field.comm(bytes), field.text(bytes), field.bitmap(bytes));
        assert!(field.end() <= 1 << 16);
    }
});
