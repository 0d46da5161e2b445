//! Words for why a journal ended before its measurement.

use crate::any_version::{UNKNOWN, in_words};
use crate::style::tame;
use jitterscope_model::{AnyVersion, JournalFault};

/// The reason, without a full stop.
#[must_use]
pub fn journal_fault(of: &AnyVersion<JournalFault>) -> String {
    let words = |of: &JournalFault| match of {
        JournalFault::StockOverfilled => "its stock of room was overfilled: this is a bug".into(),
        JournalFault::System { system } => tame(system),
    };
    in_words(of, words, UNKNOWN)
}
