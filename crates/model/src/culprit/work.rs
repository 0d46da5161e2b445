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
    /// Of several workers together: what [`Work::is_unbound`] says of each, where they agree.
    pub unbound: Option<bool>,
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

/// What the names of workers begin with: of any CPU, `kworker/u4:1`; of one, `kworker/1:2`. A rescuer,
/// `kworker/R-name`, serves both. `kernel/workqueue.c`.
const WORKER: &str = "kworker/";

impl Worker {
    /// Whether it belongs to a pool that is bound to no single CPU; `None` where its name does not tell.
    #[must_use]
    pub fn is_unbound(&self) -> Option<bool> {
        match self
            .comm
            .as_deref()?
            .strip_prefix(WORKER)?
            .as_bytes()
            .first()?
        {
            b'u' => Some(true),
            b'0'..=b'9' => Some(false),
            _ => None,
        }
    }
}

impl Work {
    /// Whether workers that are bound to no single CPU ran it: only such work keeps to a mask of CPUs. `None`
    /// where that is not known, or some did and others not.
    #[must_use]
    pub fn is_unbound(&self) -> Option<bool> {
        self.unbound.or_else(|| self.worker.as_ref()?.is_unbound())
    }

    /// What both have in common; a worker of no item keeps its name.
    pub(super) fn meet(&mut self, other: &Work) {
        let unbound = self
            .is_unbound()
            .filter(|_| self.is_unbound() == other.is_unbound());
        if self.workqueue != other.workqueue {
            self.workqueue = None;
        }
        if self.worker != other.worker {
            let comm = self.worker.take().and_then(|worker| worker.comm);
            if self.function.is_none() {
                self.worker = Some(Worker {
                    comm,
                    ..Worker::default()
                });
            }
            self.unbound = unbound;
        }
    }
}
