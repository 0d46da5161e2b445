//! Words for stored data of any version.

use jitterscope_model::AnyVersion;

/// A reason that a newer version wrote, as part of a sentence.
pub(crate) const UNKNOWN: &str = "for a reason that this version does not know";

pub(crate) const LEFT_OUT: &str = "left out";

/// The words for a value; `unknown` if a newer version wrote it.
pub(crate) fn in_words<T>(
    of: &AnyVersion<T>,
    words: impl FnOnce(&T) -> String,
    unknown: &str,
) -> String {
    match of {
        AnyVersion::Known(known) => words(known),
        AnyVersion::Unknown(_) if of.is_left_out() => LEFT_OUT.to_owned(),
        AnyVersion::Unknown(_) => unknown.to_owned(),
    }
}
