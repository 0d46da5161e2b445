//! A limit on CPU time.

use crate::Name;
use serde::{Deserialize, Serialize};

/// So much CPU time in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QuotaLimit {
    /// CPU time that is granted, microseconds.
    pub quota_us: u64,
    /// In each of these, microseconds.
    pub period_us: u64,
}

impl QuotaLimit {
    /// The limit in thousandths of a CPU; `None` of a period of zero.
    #[must_use]
    pub fn millis(self) -> Option<u64> {
        self.quota_us.checked_mul(1000)?.checked_div(self.period_us)
    }
}

/// A control group's CPU quota.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quota {
    /// The group that has the limit, as `/proc/PID/cgroup` names it: `/kubepods/pod1`. Whoever may make groups
    /// chooses their names.
    pub cgroup: Name,
    /// Its limit; `None` of several limits together.
    pub limit: Option<QuotaLimit>,
}

impl Quota {
    /// What both have in common; the group stays.
    pub(super) fn meet(&mut self, other: &Quota) {
        self.limit = self.limit.filter(|own| other.limit == Some(*own));
    }
}
