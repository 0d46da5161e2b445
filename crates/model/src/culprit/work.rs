//! Deferred work of the kernel as a culprit.

use super::SchedClass;
use crate::Name;

/// A work item, or a worker whose item was not seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Work {
    /// What it runs; `None` when no item was seen.
    pub function: Option<Name>,
    /// The queue that it was put on, where that was seen.
    pub workqueue: Option<Name>,
    /// The thread that ran it, where known; `None` of several workers together.
    pub worker: Option<Worker>,
}

/// A kernel worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Worker {
    /// Kernel thread id, where known.
    pub tid: Option<i32>,
    /// Its name, where known: `kworker/1:2`.
    pub comm: Option<Name>,
    /// How urgent it was, where known.
    pub class: Option<SchedClass>,
}

impl Work {
    /// What both have in common; a worker of no item keeps its name.
    pub(super) fn meet(&mut self, other: &Work) {
        if self.workqueue != other.workqueue {
            self.workqueue = None;
        }
        if self.worker != other.worker {
            let comm = self.worker.take().and_then(|worker| worker.comm);
            if self.function.is_none() {
                self.worker = Some(Worker { comm, ..Worker::default() });
            }
        }
    }
}
