//! Another thread got the CPU: `sched_switch` away from the victim and back.

use super::{Rule, Scene, kworker, rt_throttle, unnamed};
use crate::lexicon::Lexicon;
use crate::timeline::Frame;
use jitterscope_model::{
    Culprit, CulpritKind, EventKind, Evidence, SchedClass, Subject, TaskRef, Work, Worker,
};

/// Frames of threads other than the victim. The timeline opens and closes them at `sched_switch`.
pub(crate) static THREAD: Rule = Rule {
    evidence: Evidence::SwitchRecords,
    opens: |_| false,
    closes: |_, _| false,
    endless: false,
    victims_only: false,
    sleeps: false,
    named_by: kworker::is_work,
    culprit: name,
};

fn name(frame: &Frame, scene: &Scene<'_>) -> Culprit {
    let EventKind::SchedSwitch { prev, prev_state, next } = &frame.opening.kind else {
        return unnamed(CulpritKind::Thread);
    };
    if let Some(throttled) = rt_throttle::name(frame, scene, prev, *prev_state, next) {
        return throttled;
    }
    let sender = scene.senders.waker(next.tid, frame.start, scene.lexicon);
    Culprit { sender, subject: subject(next, scene.lexicon) }
}

/// A thread that has the CPU. A worker is one of which no item was seen: its own name is all there is.
pub(crate) fn subject(task: &TaskRef, lexicon: &dyn Lexicon) -> Subject {
    if !task.comm.as_bytes().starts_with(b"kworker/") {
        return Subject::Thread(lexicon.task(task));
    }
    let worker = Worker {
        tid: Some(task.tid),
        comm: Some(task.comm.to_string().into()),
        class: Some(SchedClass::of_priority(task.prio)),
    };
    Subject::Work(Work { function: None, workqueue: None, worker: Some(worker) })
}
