//! TOML files of users: read within a bound, and with the line of what is wrong.

use jitterscope_platform::{AccessError, read_bounded};
use std::path::Path;
use toml::Spanned;
use toml::de::DeTable;

/// The longest file, bytes.
const LONGEST: u64 = 1 << 20;

/// The text of a file that somebody else may have made.
///
/// # Errors
/// It is no regular file, is too long, or cannot be read.
pub fn text(path: &Path) -> Result<String, AccessError> {
    let bytes = read_bounded(path, LONGEST)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The table of a file.
///
/// # Errors
/// The line that is no TOML, from 1, and why.
pub fn table(text: &str) -> Result<Spanned<DeTable<'_>>, (usize, String)> {
    DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        (line(text, at), error.message().to_owned())
    })
}

/// The line of a place, from 1. `at`: bytes from the beginning.
#[must_use]
pub fn line(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}
