//! Packs data for a page.

use base64::Engine;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::Write;

/// Deflated, in base64.
pub(super) fn packed(plain: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(deflated(plain))
}

fn deflated(plain: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail; if it did, the page would report damaged data.
    let _ = encoder.write_all(plain);
    encoder.finish().unwrap_or_default()
}
