//! Who was to blame: one concept a file.
//!
//! A [`Culprit`] is a [`Subject`], which is data of its own for each kind, and the [`Sender`] that triggered
//! it. [`SubjectFields`] is the one flat form of a subject, for tables and JSON. [`CulpritKey`] says which
//! subjects add up, [`CulpritSums`] adds them up, and [`CulpritTotals`] are those of a run.

mod about;
mod evidence;
mod fact;
mod fields;
mod key;
mod kind;
mod met;
mod phase;
mod pool;
mod quota;
mod sched_class;
mod sender;
mod stall_sets;
mod subject;
mod sums;
mod task;
#[cfg(test)]
mod tests;
mod timer_source;
mod totals;
mod verdict;
mod work;

pub use about::{About, Meanwhile};
pub use evidence::Evidence;
pub use fact::{Fact, FactForm};
pub use fields::SubjectFields;
pub use key::{CulpritKey, KeyLevel};
pub use kind::{CulpritKind, NameOf};
pub use met::MetCulprits;
pub use phase::Phase;
pub use pool::CulpritPool;
pub use quota::{Quota, QuotaLimit};
pub use sched_class::SchedClass;
pub use sender::Sender;
pub use stall_sets::StallSets;
pub use subject::Subject;
pub use sums::{CulpritSums, SumRow};
pub use task::{Owner, Task, TaskIdentity};
pub use timer_source::TimerSource;
pub use totals::{CulpritTotal, CulpritTotals, CulpritTotalsBuilder};
pub use verdict::Verdict;
pub use work::{Work, Worker};

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What ran instead of the victim. Parts of one stall have the same culprit when subject and sender are
/// equal; over a run they add up by [`CulpritKey`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Culprit {
    /// What it was.
    #[serde(flatten)]
    pub subject: Subject,
    /// Who triggered it, where known.
    pub sender: Option<Sender>,
}

impl Culprit {
    /// What kind of thing.
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
