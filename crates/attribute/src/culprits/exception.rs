//! Exceptions of the victim itself: page faults and machine checks. They have no exit record, and last until the next
//! exception or the end of the stall.

use super::{Kind, by_itself};
use jitterscope_model::{Evidence, Subject};

pub(super) static FAULT: Kind = Kind {
    evidence: Evidence::ExceptionRecord,
    subject: |frame, _| Subject::PageFault {
        user: frame.key == 1,
    },
    trigger: by_itself,
};

pub(super) static MACHINE_CHECK: Kind = Kind {
    evidence: Evidence::ExceptionRecord,
    subject: |frame, _| Subject::MachineCheck {
        bank: u32::try_from(frame.key).ok(),
    },
    trigger: by_itself,
};
