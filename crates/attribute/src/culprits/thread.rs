//! Another thread got the CPU: `sched_switch` away from the victim and back.

use super::{Rule, Scene, culprit, kworker, rt_throttle};
use crate::timeline::Frame;
use jitterscope_model::{Culprit, CulpritKind, EventKind, TaskRef};

/// Frames of threads other than the victim. The timeline opens and closes them at `sched_switch`.
pub(crate) static THREAD: Rule = Rule {
    evidence: "sched_switch",
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
        return culprit(CulpritKind::Thread, "unknown", "");
    };
    if let Some(throttled) = rt_throttle::name(frame, scene, prev, *prev_state, next) {
        return throttled;
    }
    let sender = scene.senders.waker(next.tid, frame.start, scene.lexicon);
    let comm = next.comm.to_string();
    if comm.starts_with("kworker/") {
        // A worker that ran no recorded item: its own name is all there is.
        return Culprit { sender, ..culprit(CulpritKind::Kworker, &comm, &format!("pid {}", next.tid)) };
    }
    let detail = format!("pid {}{}", next.tid, class(next));
    Culprit { sender, ..culprit(CulpritKind::Thread, &comm, &detail) }
}

/// The scheduling class behind a kernel priority, when it is not plain fair.
fn class(task: &TaskRef) -> String {
    match task.prio {
        i32::MIN..=-1 => ", deadline".into(),
        // The kernel counts real-time priorities downwards: 99 - prio is what the user set.
        0..=99 => format!(", real-time {}", 99 - task.prio),
        _ => String::new(),
    }
}
