//! A softirq: `softirq_entry` to `_exit`.

use super::{Kind, by_itself};
use jitterscope_model::{Evidence, Subject};

/// Softirqs. A timer function that one runs provides its name.
pub(super) static SOFTIRQ: Kind = Kind {
    evidence: Evidence::SoftirqRecords,
    subject: |frame, _| Subject::Softirq(u32::try_from(frame.key).unwrap_or(u32::MAX)),
    trigger: by_itself,
};
