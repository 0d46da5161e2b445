//! Time of which no record says whose it was.

use super::Kind;
use jitterscope_model::{About, Evidence, Subject, Verdict};

/// Between the last record of one thread and the first of another.
pub(super) static UNRECORDED: Kind = Kind {
    evidence: Evidence::SwitchRecords,
    culprit: |_, _| Subject::verdict(Verdict::UnrecordedSwitch).into(),
};

/// Before any record.
pub(super) static NOT_SEEN: Kind = Kind {
    evidence: Evidence::Nothing,
    culprit: |_, naming| Subject::Verdict(Verdict::NotSeen, About::Cpu(naming.cpu)).into(),
};
