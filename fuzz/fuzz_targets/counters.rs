//! Any text as the counters in `/proc`, and as the kernel's symbol table.
#![no_main]

use jitterscope_model::KernelAddr;
use jitterscope_source::{Symbols, counters};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let _ = counters::parse_table(&text);
    let _ = counters::parse_stat(&text);
    let _ = counters::parse_schedstat(&text);
    if let Ok(symbols) = Symbols::parse(bytes) {
        let _ = (
            symbols.name(KernelAddr(0x1000)),
            symbols.name(KernelAddr(u64::MAX)),
        );
    }
});
