//! A CPU quota above the victim ran out.

use super::{Kind, Naming, by_itself};
use crate::occupancy::Frame;
use jitterscope_model::{CulpritKind, Evidence, Quota, Subject, Task, Verdict};

/// Other threads' turns, and idle time, in which the victim was not allowed to run.
pub(super) static THROTTLED: Kind = Kind {
    evidence: Evidence::QuotaCount,
    subject,
    trigger: by_itself,
};

fn subject(frame: &Frame, naming: &Naming<'_>) -> Subject {
    let quota = usize::try_from(frame.key)
        .ok()
        .and_then(|at| naming.quotas.get(at));
    let Some(quota) = quota else {
        return Subject::verdict(Verdict::RunnableIdle);
    };
    // Its control group is not the quota's group.
    let beside = (frame.tid != 0).then(|| Task {
        owner: None,
        ..naming.resolver.task(&naming.task(frame))
    });
    Subject::Quota(Quota {
        beside,
        ..quota.clone()
    })
}

/// The evidence for a verdict of this kind, if it is a quota's.
pub(crate) fn quota_evidence(kind: CulpritKind) -> Option<Evidence> {
    match kind {
        CulpritKind::Quota => Some(Evidence::QuotaCount),
        CulpritKind::QuotaBeside => Some(Evidence::SwitchRecordsWhileThrottled),
        _ => None,
    }
}
