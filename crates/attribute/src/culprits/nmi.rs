//! Non-maskable interrupts: `nmi_handler`, written when the handler ends.

use super::{Kind, by_itself};
use jitterscope_model::{Evidence, KernelAddr, Subject};

pub(super) static HANDLER: Kind = Kind {
    evidence: Evidence::NmiRecord,
    subject: |frame, naming| Subject::Nmi(naming.resolver.function(KernelAddr(frame.key))),
    trigger: by_itself,
};
