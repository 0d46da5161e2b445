//! A limit on CPU time.

use super::Task;
use crate::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An amount of CPU time per period.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct QuotaLimit {
    /// Granted CPU time, microseconds.
    pub quota_us: u64,
    /// Length of a period, microseconds.
    pub period_us: u64,
}

impl QuotaLimit {
    /// The limit in thousandths of a CPU; `None` for a period of zero.
    #[must_use]
    pub fn millis(self) -> Option<u64> {
        self.quota_us.checked_mul(1000)?.checked_div(self.period_us)
    }
}

/// A control group's CPU quota.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quota {
    /// The limited group, as `/proc/PID/cgroup` names it: `/kubepods/pod1`. Users with the right to make groups choose
    /// their names.
    pub cgroup: Name,
    /// Its limit; `None` for several limits together.
    pub limit: Option<QuotaLimit>,
    /// The thread that had the CPU while the group was throttled; `None` if the CPU idled.
    pub beside: Option<Task>,
}

impl Quota {
    /// Keeps what both share; the group is always the same.
    pub(super) fn meet(&mut self, other: &Quota) {
        self.limit = self.limit.filter(|own| other.limit == Some(*own));
        if let (Some(own), Some(other)) = (&mut self.beside, &other.beside) {
            own.meet(other);
        }
    }
}
