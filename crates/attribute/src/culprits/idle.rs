//! Idle time, which belongs to the idle thread; but a waiting thread also waits for the idle exit.

use super::{Kind, by_itself};
use jitterscope_model::{About, Culprit, Evidence, Subject, Verdict};

pub(super) static STATE: Kind = Kind {
    evidence: Evidence::WakeupRecords,
    subject: |frame, _| {
        let state = u32::try_from(frame.key).map_or(About::Nothing, About::IdleState);
        Subject::Verdict(Verdict::IdleExit, state)
    },
    trigger: by_itself,
};

/// The exit from idle, to a runnable thread.
pub(crate) fn idle_exit() -> Culprit {
    Subject::verdict(Verdict::IdleExit).into()
}
