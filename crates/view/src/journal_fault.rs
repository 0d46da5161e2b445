//! Why a journal ended before its measurement, in words.

use crate::any_version::{UNKNOWN, in_words};
use crate::style::tame;
use jitterscope_model::{AnyVersion, JournalFault};

/// Why a journal could not be continued; without its full stop.
#[must_use]
pub fn journal_fault(of: &AnyVersion<JournalFault>) -> String {
    let words = |of: &JournalFault| match of {
        JournalFault::StockOverfilled => "its stock of room was overfilled: this is a bug".into(),
        JournalFault::System { system } => tame(system),
    };
    in_words(of, words, UNKNOWN)
}
