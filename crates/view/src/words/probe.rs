//! Names of recordings.

use crate::style::tame;
use jitterscope_model::ProbeKind;

/// The name of a kind of recording as a user types it, as in `record none`, independent of the word in stored runs.
pub(crate) fn probe(kind: &str) -> String {
    match ProbeKind::from_word(kind) {
        Some(ProbeKind::Passive) => "none".into(),
        _ => tame(kind),
    }
}
