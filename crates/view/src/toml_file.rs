//! TOML files of users: with the line of what is wrong.

use toml::Spanned;
use toml::de::DeTable;

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
