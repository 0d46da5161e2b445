//! The trigger of a culprit.

use crate::{CpuId, ExecutionContext, Name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The trigger of a culprit: the waker of a thread, the sender of an IPI, the task that queued the work.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Sender {
    /// Whether the thread itself was the trigger, or an interruption of it.
    #[serde(default)]
    pub context: ExecutionContext,
    /// The name of its thread; `None` if the thread had ended before its name was read, and if `tid` is 0.
    pub comm: Option<Name>,
    /// Its thread id; 0 if an interruption of a thread was the trigger.
    pub tid: i32,
    /// Its process id, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tgid: Option<i32>,
    /// The CPU that it ran on.
    pub cpu: CpuId,
    /// The kernel function through which it was sent, if recorded.
    pub via: Option<Name>,
    /// For a softirq: the interrupted thread. That thread may have raised the softirq, for example by sending to the
    /// loopback device, or may be unrelated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beneath: Option<Name>,
}

impl Sender {
    /// Whether the thread itself was the trigger.
    #[must_use]
    pub fn is_thread(&self) -> bool {
        self.context == ExecutionContext::Thread
    }

    /// Converts the form of version 0.1, in which the thread beneath a softirq was stored as the sender.
    #[must_use]
    pub fn as_recorded_now(self) -> Sender {
        match self.context {
            ExecutionContext::Softirq => Sender {
                beneath: self.beneath.or(self.comm),
                comm: None,
                tid: 0,
                tgid: None,
                ..self
            },
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_in_the_place_of_an_older_softirqs_sender_was_beneath_it() {
        let recorded = |context| Sender {
            context,
            comm: Some("bystander".into()),
            tid: 7,
            tgid: Some(70),
            cpu: CpuId(1),
            via: Some("tcp_v4_rcv".into()),
            beneath: None,
        };
        let thread = recorded(ExecutionContext::Thread);
        assert_eq!(thread.clone().as_recorded_now(), thread);
        let now = recorded(ExecutionContext::Softirq).as_recorded_now();
        assert_eq!((now.comm.clone(), now.tid, now.tgid), (None, 0, None));
        assert_eq!(now.beneath.as_deref(), Some("bystander"));
        assert_eq!(
            (now.via.as_deref(), now.cpu),
            (Some("tcp_v4_rcv"), CpuId(1))
        );
        assert_eq!(now.clone().as_recorded_now(), now);
    }
}
