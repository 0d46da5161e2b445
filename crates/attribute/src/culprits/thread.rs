//! Another thread got the CPU: `sched_switch` away from the victim and back.

use super::{Kind, Naming};
use crate::occupancy::Frame;
use jitterscope_model::{Evidence, SchedClass, Subject, Work, Worker};

/// Turns of threads other than the victim.
pub(super) static TURN: Kind = Kind {
    evidence: Evidence::SwitchRecords,
    subject,
    trigger: |frame, naming| {
        naming
            .senders
            .woken_by(frame.tid, naming.cpu, frame.opened, naming.resolver)
    },
};

/// A thread that has the CPU. A worker here has no recorded item, so only its own name is known.
fn subject(frame: &Frame, naming: &Naming<'_>) -> Subject {
    let task = naming.task(frame);
    let known = frame.priority() != Frame::NO_PRIORITY;
    let named = naming.resolver.task(&task);
    // Any thread may choose this name; flags identify kernel threads.
    if !task.comm.as_bytes().starts_with(b"kworker/") || named.is_of_user() {
        let class = named.class.clone().filter(|_| known || task.tid == 0);
        let was = frame.was().and_then(|was| naming.names.comm(was));
        let was = was.map(|was| naming.resolver.text(was));
        return Subject::Thread(jitterscope_model::Task {
            class,
            was,
            ..named
        });
    }
    let worker = Worker {
        tid: Some(task.tid),
        comm: Some(task.comm.to_string().into()),
        class: known.then(|| SchedClass::of_priority(task.prio)),
    };
    Subject::Work(Work {
        function: None,
        workqueue: None,
        worker: Some(worker),
        unbound: None,
    })
}
