//! Time that no record assigns to a thread.

use super::{Kind, Naming, by_itself};
use crate::occupancy::Frame;
use jitterscope_model::{About, Evidence, Meanwhile, Subject, Task, Verdict};

/// Between the last record of one thread and the first of another.
pub(super) static UNRECORDED: Kind = Kind {
    evidence: Evidence::SwitchRecords,
    subject: unrecorded,
    trigger: by_itself,
};

/// The subject includes the thread that was seen at the end: it may have had the CPU for all or some of the time.
pub(crate) fn unrecorded(frame: &Frame, naming: &Naming<'_>) -> Subject {
    let seen = frame
        .seen_at_end()
        .filter(|tid| *tid > 0 && *tid != naming.victim);
    let who = |tid| {
        let task = naming.resolver.task(&naming.task(&Frame { tid, ..*frame }));
        About::Meanwhile(Meanwhile::Ran(Task {
            class: None,
            ..task
        }))
    };
    Subject::Verdict(Verdict::UnrecordedSwitch, seen.map_or(About::Nothing, who))
}

/// Before any record.
pub(super) static NOT_SEEN: Kind = Kind {
    evidence: Evidence::Nothing,
    subject: |_, naming| Subject::Verdict(Verdict::NotSeen, About::Cpu(naming.cpu)),
    trigger: by_itself,
};
