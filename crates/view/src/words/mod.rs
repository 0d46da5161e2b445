//! Culprits in words: the only place where English is made of them.

mod culprit;
mod functions;
mod known;
mod probe;
mod sender;
mod threads;
mod timeline;
mod verdicts;

pub(crate) use culprit::{
    detail, explain, further_detail, kind_and_name, name, phase_and_name, row_explanation,
};
pub(crate) use probe::probe;
pub(crate) use sender::{ENDED, sender_name, sent_from};
pub(crate) use timeline::timeline_item;
pub(crate) use verdicts::possibilities;

/// A table from a name to its phrase.
type Table = &'static [(&'static str, &'static str)];
