//! Deferred work of the kernel as a culprit.

use super::SchedClass;
use crate::Name;

/// A work item, or a worker whose item no record shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Work {
    /// Its function; `None` if no record shows the item.
    pub function: Option<Name>,
    /// The queue that it was put on, if recorded.
    pub workqueue: Option<Name>,
    /// The thread that ran it, if known; `None` for several workers together.
    pub worker: Option<Worker>,
    /// For several workers together: [`Work::is_unbound`] of each, if they agree.
    pub unbound: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Worker {
    /// Kernel thread id, if known.
    pub tid: Option<i32>,
    /// Its name, if known: `kworker/1:2`.
    pub comm: Option<Name>,
    /// Its scheduling class, if known.
    pub class: Option<SchedClass>,
}

/// The prefix of workers' names. `kworker/u4:1` is unbound, `kworker/1:2` is bound to one CPU. A rescuer,
/// `kworker/R-name`, serves both. From `kernel/workqueue.c`.
const WORKER: &str = "kworker/";

impl Worker {
    /// Whether its pool is bound to no single CPU; `None` if its name does not tell.
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
    /// Whether unbound workers ran it: a CPU mask only affects such work. `None` if that is unknown or differs between
    /// the workers.
    #[must_use]
    pub fn is_unbound(&self) -> Option<bool> {
        self.unbound.or_else(|| self.worker.as_ref()?.is_unbound())
    }

    /// Keeps what both share; a worker without an item keeps its name.
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
