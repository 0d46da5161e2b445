//! Any bytes as a `perf.data`: its descriptions, its samples as pages, and every page through the decoder that the
//! descriptions make. The corpus begins with a small whole file.
#![no_main]

use jitterscope_fuzz::{decode, pages};
use jitterscope_source::perfdata;
use libfuzzer_sys::fuzz_target;
use std::sync::atomic::AtomicBool;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(read) = perfdata::open(&bytes, pages(), &AtomicBool::new(false)) {
        // Its samples are as foreign as its descriptions.
        decode(&read.dat);
    }
});
