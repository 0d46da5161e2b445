//! Why a journal ended before its measurement, in words.

use jitterscope_model::JournalFault;

/// Why a journal could not be continued; without its full stop.
#[must_use]
pub fn journal_fault(of: &JournalFault) -> String {
    match of {
        JournalFault::StockOverfilled => "its stock of room was overfilled: this is a bug".into(),
        JournalFault::System(text) => text.clone(),
        JournalFault::Unknown(_) => "for a reason that this version does not know".into(),
    }
}
