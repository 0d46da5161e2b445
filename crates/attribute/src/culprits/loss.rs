//! Trace data was lost near the stall: no verdict is given.

use super::{Kind, by_itself};
use jitterscope_model::{Culprit, Evidence, Subject, Verdict};

/// Where records were lost.
pub(super) static LOST: Kind = Kind {
    evidence: Evidence::LostRecords,
    subject: |_, _| Subject::verdict(Verdict::TraceDataLost),
    trigger: by_itself,
};

/// The withheld verdict.
pub(crate) fn lost() -> Culprit {
    Subject::verdict(Verdict::TraceDataLost).into()
}
