//! Words for culprits: the only place that creates English about them.

mod culprit;
mod functions;
mod known;
mod probe;
mod sender;
mod threads;
mod timeline;
mod verdicts;

pub(crate) use culprit::{
    detail, explain, further_detail, in_common, kind_and_name, name, phase_and_name, row_detail,
    row_explanation, row_further_detail,
};
pub(crate) use probe::probe;
pub(crate) use sender::{ENDED, sender_name, sender_verb, sent_from};
pub(crate) use timeline::timeline_item;
pub(crate) use verdicts::possibilities;

/// A table from a name to its phrase.
type Table = &'static [(&'static str, &'static str)];
