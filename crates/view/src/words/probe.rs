//! What a recording is called.

use crate::style::tame;
use jitterscope_model::ProbeKind;

/// What a kind of recording is called where it is typed, `record none`, whatever stored runs call it.
pub(crate) fn probe(kind: &str) -> String {
    match ProbeKind::from_word(kind) {
        Some(ProbeKind::Passive) => "none".into(),
        _ => tame(kind),
    }
}
