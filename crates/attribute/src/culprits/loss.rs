//! Trace data was lost near the stall: no verdict is given.

use super::Kind;
use jitterscope_model::{Culprit, Evidence, Subject, Verdict};

/// Where records were lost.
pub(super) static LOST: Kind = Kind { evidence: Evidence::LostRecords, culprit: |_, _| lost() };

/// The withheld verdict.
pub(crate) fn lost() -> Culprit {
    Subject::verdict(Verdict::TraceDataLost).into()
}
