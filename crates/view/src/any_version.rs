//! What is stored as data and was text in earlier versions, in words.

use crate::style::tame;
use jitterscope_model::AnyVersion;

/// What it is in words: those of an earlier version as they stand, and `unknown` where a newer one wrote it.
pub(crate) fn in_words<T>(
    of: &AnyVersion<T>,
    words: impl FnOnce(&T) -> String,
    unknown: impl FnOnce() -> String,
) -> String {
    match of {
        AnyVersion::Known(known) => words(known),
        AnyVersion::Worded(text) => tame(text),
        AnyVersion::Unknown(_) => unknown(),
    }
}
