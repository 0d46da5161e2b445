//! Texts that a user names, and that somebody else may have made.

use jitterscope_platform::{AccessError, read_bounded};
use std::path::Path;

/// The longest text, bytes.
const LONGEST: u64 = 1 << 20;

/// Reads a text.
///
/// # Errors
/// It is no regular file, is too long, or cannot be read.
pub fn text(path: &Path) -> Result<String, AccessError> {
    let bytes = read_bounded(path, LONGEST)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
