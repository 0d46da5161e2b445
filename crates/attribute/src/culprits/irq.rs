//! A device's interrupt handler: `irq_handler_entry` to `_exit`.

use super::{Kind, by_itself};
use jitterscope_model::{Evidence, Subject};

pub(super) static HANDLER: Kind = Kind {
    evidence: Evidence::HandlerRecords,
    subject: |frame, naming| {
        let number = u32::try_from(frame.key).ok();
        Subject::Interrupt {
            number,
            action: naming.text(frame.subject),
        }
    },
    trigger: by_itself,
};
