//! What is stored as data and was text in earlier versions, in words.

use crate::style::tame;
use jitterscope_model::AnyVersion;

/// Said of a reason that a newer version gave, as part of a sentence.
pub(crate) const UNKNOWN: &str = "for a reason that this version does not know";

/// What it is in words: those of an earlier version as they stand, and `unknown` where a newer one wrote it.
pub(crate) fn in_words<T>(
    of: &AnyVersion<T>,
    words: impl FnOnce(&T) -> String,
    unknown: &str,
) -> String {
    match of {
        AnyVersion::Known(known) => words(known),
        AnyVersion::Worded(text) => tame(text),
        AnyVersion::Unknown(_) => unknown.to_owned(),
    }
}
