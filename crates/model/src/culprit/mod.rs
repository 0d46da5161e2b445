//! What ran instead of the victim: one concept per file.
//!
//! A [`Culprit`] is a [`Subject`], with different data for each kind, and the [`Sender`] that triggered it.
//! [`SubjectFields`] is the one flat form of a subject, for tables and JSON. [`CulpritKey`] says which subjects add up,
//! [`CulpritSums`] adds them up, and [`CulpritTotals`] are the totals of a run.

mod about;
mod crowds;
mod evidence;
mod fact;
mod fields;
mod group;
mod key;
mod kind;
mod met;
mod phase;
mod quota;
mod sched_class;
mod sender;
mod stall_sets;
mod subject;
mod sums;
mod table;
mod task;
#[cfg(test)]
mod tests;
mod timer_source;
mod totals;
mod verdict;
mod work;

pub use about::{About, Meanwhile};
pub use crowds::Crowds;
pub use evidence::Evidence;
pub use fact::{Fact, FactForm};
pub use fields::SubjectFields;
pub use group::{GroupPath, NamedGroup};
pub use key::{CulpritKey, KeyLevel};
pub use kind::{CulpritKind, NameOf};
pub use met::MetCulprits;
pub use phase::Phase;
pub use quota::{Quota, QuotaLimit};
pub use sched_class::SchedClass;
pub use sender::Sender;
pub use stall_sets::StallSets;
pub use subject::Subject;
pub use sums::{CulpritSums, SumRow};
pub use table::{CulpritId, CulpritTable, Given, Remark, RemarkId};
pub use task::{Owner, Task, TaskIdentity};
pub use timer_source::TimerSource;
pub use totals::{CulpritTotal, CulpritTotals, CulpritTotalsBuilder};
pub use verdict::Verdict;
pub use work::{Work, Worker};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What ran instead of the victim. Parts of one stall have the same culprit if subject and sender are equal; over a run
/// they add up by [`CulpritKey`].
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Culprit {
    #[serde(flatten)]
    pub subject: Subject,
    /// Its trigger, if known.
    pub sender: Option<Sender>,
}

impl Culprit {
    /// The kind of its subject.
    #[must_use]
    pub fn kind(&self) -> CulpritKind {
        self.subject.kind()
    }
}

impl From<Subject> for Culprit {
    fn from(subject: Subject) -> Culprit {
        Culprit {
            subject,
            sender: None,
        }
    }
}

impl From<Subject> for Arc<Culprit> {
    fn from(subject: Subject) -> Arc<Culprit> {
        Arc::new(subject.into())
    }
}
