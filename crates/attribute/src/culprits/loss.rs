//! Trace data was lost near the stall: no verdict is given.

use jitterscope_model::{Culprit, Subject, Verdict};

/// The withheld verdict.
pub(crate) fn lost() -> Culprit {
    Subject::verdict(Verdict::TraceDataLost).into()
}
