//! A kernel worker ran a work item: `workqueue_execute_start` to `_end`.

use super::{Kind, Naming};
use crate::occupancy::Frame;
use jitterscope_model::{Evidence, KernelAddr, Subject, Work, Worker};

/// Work items. They are nested in their worker's turn, and provide its name.
pub(super) static WORK: Kind = Kind {
    evidence: Evidence::WorkRecords,
    subject,
    trigger: |frame, naming| naming.senders.queued_by(frame.key, frame.opened),
};

fn subject(frame: &Frame, naming: &Naming<'_>) -> Subject {
    let tid = frame.tid;
    let worker = Worker {
        tid: Some(tid),
        comm: naming.resolver.comm(tid),
        class: None,
    };
    let workqueue = naming.senders.workqueue(frame.key, frame.opened);
    let function = Some(naming.resolver.function(KernelAddr(frame.subject)));
    Subject::Work(Work {
        function,
        workqueue,
        worker: Some(worker),
        unbound: None,
    })
}
