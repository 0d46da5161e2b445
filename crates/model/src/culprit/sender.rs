//! Who triggered a culprit.

use crate::{CpuId, ExecutionContext, Name};
use serde::{Deserialize, Serialize};

/// Who triggered a culprit from elsewhere: the waker of a thread, the sender of an IPI, the task
/// that queued the work.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sender {
    /// Whether it was the thread itself, or what ran on top of it.
    #[serde(default)]
    pub context: ExecutionContext,
    /// Its thread's name; `None` when the thread was gone before it could be asked, and where `tid` is 0.
    pub comm: Option<Name>,
    /// Its thread id; 0 of interrupts and of softirqs with which the thread beneath had nothing to do.
    pub tid: i32,
    /// Its process, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tgid: Option<i32>,
    /// The CPU that it ran on.
    pub cpu: CpuId,
    /// The kernel function through which it was sent, where recorded.
    pub via: Option<Name>,
}

impl Sender {
    /// Whether a thread did it, or may have had a part in it.
    #[must_use]
    pub fn involves_thread(&self) -> bool {
        self.context == ExecutionContext::Thread
            || (self.context.may_involve_thread() && (self.comm.is_some() || self.tid != 0))
    }
}
