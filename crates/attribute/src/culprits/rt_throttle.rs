//! The scheduler took the CPU from a runnable real-time victim and gave it to a lesser task: real-time
//! throttling (`sched_rt_runtime_us`), or its successor, the fair server.

use super::Naming;
use crate::occupancy::Frame;
use jitterscope_model::{Culprit, Subject};

const FIRST_FAIR_PRIORITY: i16 = 100;
/// Sleep and stop states of a switch; the bit above them marks a preempted task, which is runnable.
const TASK_STATES: u16 = 0xff;

/// The throttling, when the switch that began a turn shows it: the victim was real-time and still runnable,
/// and who came next is neither real-time nor deadline.
pub(super) fn name(turn: &Frame, naming: &Naming<'_>) -> Option<Culprit> {
    let before = turn.before()?;
    let real_time_victim = before.tid == naming.victim && (0..FIRST_FAIR_PRIORITY).contains(&before.prio);
    let demoted = before.state & TASK_STATES == 0 && (turn.prio >= FIRST_FAIR_PRIORITY || turn.tid == 0);
    let ran = || naming.lexicon.task(&naming.task(turn));
    (real_time_victim && demoted).then(|| Subject::Throttle(ran()).into())
}
