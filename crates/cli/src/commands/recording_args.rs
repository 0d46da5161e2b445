//! Arguments that all recordings have.

use crate::units::size;

/// The size of a trace buffer, bytes.
pub fn trace_buffer(text: &str) -> Result<u64, String> {
    match size(text)? {
        0..=65_535 => Err("must be at least 64KiB".into()),
        // The kernel counts buffers in KiB of an int.
        some if some >> 10 > i32::MAX as u64 => Err("is larger than the kernel can count".into()),
        some => Ok(some),
    }
}
