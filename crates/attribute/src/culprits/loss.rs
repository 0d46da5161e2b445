//! Trace data was lost near the stall: there is no verdict.

use super::{Kind, by_itself};
use jitterscope_model::{Confidence, Culprit, Evidence, Nanos, Part, Subject, Verdict};

pub(super) static LOST: Kind = Kind {
    evidence: Evidence::LostRecords,
    subject: |_, _| Subject::verdict(Verdict::TraceDataLost),
    trigger: by_itself,
};

/// A part without a verdict for a whole stall: records were lost ([`Verdict::TraceDataLost`]), or are not trusted
/// ([`Verdict::TraceDisturbed`]).
pub(crate) fn no_verdict(why: Verdict, stalled: Nanos) -> Part {
    let culprit: Culprit = Subject::verdict(why).into();
    Part::whole(culprit, stalled, Confidence::High, Evidence::LostRecords)
}
