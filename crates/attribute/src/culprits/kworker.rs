//! A kernel worker ran a work item: `workqueue_execute_start` to `_end`.

use super::{Kind, Naming};
use crate::occupancy::Frame;
use jitterscope_model::{Culprit, Evidence, KernelAddr, Subject, Work, Worker};

/// Work items, nested in their worker's turn, which they name.
pub(super) static WORK: Kind = Kind { evidence: Evidence::WorkRecords, culprit: name };

fn name(frame: &Frame, naming: &Naming<'_>) -> Culprit {
    let tid = frame.tid;
    let worker = Worker { tid: Some(tid), comm: naming.lexicon.comm(tid), class: None };
    let (sender, workqueue) = naming.senders.queuer(frame.key, frame.opened, naming.lexicon);
    let function = Some(naming.lexicon.function(KernelAddr(frame.subject)));
    let subject = Subject::Work(Work { function, workqueue, worker: Some(worker), unbound: None });
    Culprit { sender: sender.filter(|_| !naming.folded), subject }
}
