//! Any bytes as a CTF trace: its metadata, its events as pages, and every page through the decoder that the metadata make.
//! The first four bytes say how long the metadata are; the rest is two files of events, whose border the next four say.
//! The corpus begins with small whole traces of both byte orders.
#![no_main]

use jitterscope_fuzz::{decode, pages};
use jitterscope_source::ctf;
use jitterscope_source::tracedat::ReadAt;
use libfuzzer_sys::fuzz_target;
use std::sync::atomic::AtomicBool;

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
    if let Ok(read) = ctf::open(metadata, &streams, pages(), &AtomicBool::new(false)) {
        assert_eq!(decode(&read.dat), Some(0), "our own records are whole");
    }
});
