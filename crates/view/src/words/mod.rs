//! Words for culprits. Public names have their phrases in `analyze` (`known_names`); all other English about culprits is
//! made here.

mod culprit;
mod probe;
mod sender;
mod sleep;
mod timeline;
mod verdicts;

pub(crate) use culprit::{
    detail, explain, in_common, kind_and_name, name, of_kind, phase_and_name, row_detail,
    row_explanation, row_further_detail,
};
pub(crate) use probe::probe;
pub(crate) use sender::{ENDED, sender_name, sender_verb, sent_from};
pub(crate) use sleep::{blocked_on, reason_name, shown_by};
pub(crate) use timeline::timeline_item;
pub(crate) use verdicts::{meaning, possibilities};
