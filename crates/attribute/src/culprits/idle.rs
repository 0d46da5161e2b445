//! The CPU idled: an affair of its idle thread, but for whoever waits for the way out.

use super::{Kind, by_itself};
use jitterscope_model::{About, Culprit, Evidence, Subject, Verdict};

/// Idle states.
pub(super) static STATE: Kind = Kind {
    evidence: Evidence::WakeupRecords,
    subject: |frame, _| {
        let state = u32::try_from(frame.key).map_or(About::Nothing, About::IdleState);
        Subject::Verdict(Verdict::IdleExit, state)
    },
    trigger: by_itself,
};

/// The way out of idle, to a thread that could run.
pub(crate) fn idle_exit() -> Culprit {
    Subject::verdict(Verdict::IdleExit).into()
}
