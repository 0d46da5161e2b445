//! The scheduler took the CPU from a runnable real-time victim and gave it to a lesser task: real-time
//! throttling (`sched_rt_runtime_us`), or its successor, the fair server.

use super::Scene;
use crate::timeline::Frame;
use jitterscope_model::{Culprit, Subject, TaskRef};

const FIRST_FAIR_PRIORITY: i32 = 100;

/// The throttling, when the frame's opening switch shows it: the victim was real-time and still
/// runnable, and who came next is neither real-time nor deadline.
pub(super) fn name(
    _frame: &Frame,
    scene: &Scene<'_>,
    prev: &TaskRef,
    prev_state: u64,
    next: &TaskRef,
) -> Option<Culprit> {
    let real_time_victim =
        prev.tid == scene.stall.victim.tid && (0..FIRST_FAIR_PRIORITY).contains(&prev.prio);
    let demoted = prev_state & TASK_STATES == 0 && (next.prio >= FIRST_FAIR_PRIORITY || next.tid == 0);
    (real_time_victim && demoted).then(|| Subject::Throttle(scene.lexicon.task(next)).into())
}

/// Sleep and stop states of `prev_state`; the bit above them marks a preempted task, which is runnable.
const TASK_STATES: u64 = 0xff;
