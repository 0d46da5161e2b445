//! Non-maskable interrupts: `nmi_handler`, written when the handler has ended.

use super::Kind;
use jitterscope_model::{Evidence, KernelAddr, Subject};

/// NMI handlers.
pub(super) static HANDLER: Kind = Kind {
    evidence: Evidence::NmiRecord,
    culprit: |frame, naming| Subject::Nmi(naming.lexicon.function(KernelAddr(frame.key))).into(),
};
