//! Any bytes as a trace of Perfetto: its packets, its events as pages, and every page through the decoder. The corpus
//! begins with small whole traces: one with single events, one with compact lists, one with compressed packets.
#![no_main]

use jitterscope_fuzz::{decode, pages};
use jitterscope_source::perfetto;
use libfuzzer_sys::fuzz_target;
use std::sync::atomic::AtomicBool;

fuzz_target!(|bytes: &[u8]| {
    let _ = perfetto::is_perfetto(&bytes);
    if let Ok(read) = perfetto::open(&bytes, pages(), &AtomicBool::new(false)) {
        assert_eq!(decode(&read.dat), Some(0), "our own records are whole");
    }
});
