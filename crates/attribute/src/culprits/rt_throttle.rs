//! The scheduler took the CPU from a runnable real-time victim and gave it to a lesser task: real-time
//! throttling (`sched_rt_runtime_us`), or its successor, the fair server.

use super::Naming;
use crate::occupancy::{Frame, Window};
use jitterscope_model::{Culprit, Subject};

const FIRST_FAIR_PRIORITY: i16 = 100;
/// Sleep and stop states of a switch; the bit above them marks a preempted task, which is runnable.
const TASK_STATES: u16 = 0xff;

/// The turns, by frame, that only throttling gave to their threads: the victim is real-time and could still run
/// when it left the CPU, it has not had it since, and who has it is neither real-time nor deadline.
pub(crate) fn throttled_turns(window: &Window, victim: i32) -> Vec<bool> {
    let mut waits = false;
    let of = |frame: &Frame| {
        if frame.is_turn() && frame.tid == victim {
            waits = false;
        } else if let Some(before) = frame.before().filter(|before| before.tid == victim) {
            let real_time = (0..FIRST_FAIR_PRIORITY).contains(&before.prio);
            waits = real_time && before.state & TASK_STATES == 0;
        }
        waits && frame.is_turn() && (frame.prio >= FIRST_FAIR_PRIORITY || frame.tid == 0)
    };
    window.frames.iter().map(of).collect()
}

/// Whom throttling let run.
pub(crate) fn throttled(turn: &Frame, naming: &Naming<'_>) -> Culprit {
    Subject::Throttle(naming.lexicon.task(&naming.task(turn))).into()
}
