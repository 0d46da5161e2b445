//! Trace data was lost near the stall: no verdict is given.

use super::culprit;
use jitterscope_model::{Culprit, CulpritKind};

/// The withheld verdict.
pub(crate) fn lost() -> Culprit {
    culprit(CulpritKind::Loss, "trace data lost", "the ring buffer overran near this stall")
}
