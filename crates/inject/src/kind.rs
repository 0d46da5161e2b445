//! The kinds of disturbance.

use super::Unavailable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A kind of disturbance that selftest can inject.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum DisturbKind {
    /// A SCHED_FIFO thread that wakes on the victim's CPU and works.
    Fifo,
    /// The same in the fair class, which competes with the victim.
    Fair,
    /// A timer that expires on the victim's CPU for a process pinned there.
    Timer,
    /// Interrupts from another CPU, sent by membarrier.
    Membarrier,
    /// Packets from another CPU, steered to the victim's CPU: the NET_RX softirq.
    Softirq,
    /// A work item that another CPU queues on every CPU.
    Kworker,
    /// Writeback of dirty pages, confined to the victim's CPU.
    Writeback,
    /// Stopping the measuring thread, as a debugger does.
    Stop,
    /// A CPU quota on the measuring thread's control group.
    Quota,
    /// Debug traps in the measuring thread, which leave no event.
    Trap,
}

impl DisturbKind {
    /// All kinds, in the order in which selftest runs them.
    pub const ALL: [DisturbKind; 10] = [
        DisturbKind::Fifo,
        DisturbKind::Fair,
        DisturbKind::Timer,
        DisturbKind::Membarrier,
        DisturbKind::Softirq,
        DisturbKind::Kworker,
        DisturbKind::Writeback,
        DisturbKind::Stop,
        DisturbKind::Quota,
        DisturbKind::Trap,
    ];

    /// Its name in reports and on command lines.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            DisturbKind::Fifo => "fifo",
            DisturbKind::Fair => "fair",
            DisturbKind::Timer => "timer",
            DisturbKind::Membarrier => "membarrier",
            DisturbKind::Softirq => "softirq",
            DisturbKind::Kworker => "kworker",
            DisturbKind::Writeback => "writeback",
            DisturbKind::Stop => "stop",
            DisturbKind::Quota => "quota",
            DisturbKind::Trap => "trap",
        }
    }

    /// Whether it only reaches a victim that is on its CPU at that moment: the kernel sends the interrupt only to CPUs
    /// that run a registered process.
    #[must_use]
    pub fn needs_running_victim(self) -> bool {
        self == DisturbKind::Membarrier
    }

    /// Whether the kernel records nothing of it: the only possible verdict is that no event was seen.
    #[must_use]
    pub fn leaves_no_record(self) -> bool {
        self == DisturbKind::Trap
    }

    /// Kernel events, as `system/event`, without which a recording shows the stall but not its name, and what these
    /// events tell.
    #[must_use]
    pub fn needs_events(self) -> (&'static [&'static str], &'static str) {
        match self {
            DisturbKind::Membarrier => (
                &["csd/csd_queue_cpu", "csd/csd_function_entry"],
                "who sent a function call, and which",
            ),
            _ => (&[], ""),
        }
    }

    /// Why it cannot be named if some kernel events are missing; `None` if it can. `has` says whether a `system/event`
    /// exists.
    #[must_use]
    pub fn cannot_be_named(self, has: impl Fn(&str) -> bool) -> Option<Unavailable> {
        let (events, tell) = self.needs_events();
        let lacking: Vec<String> = events
            .iter()
            .filter(|event| !has(event))
            .map(|event| event.replace('/', ":"))
            .collect();
        (!lacking.is_empty()).then(|| Unavailable::NoEvents {
            tell: tell.into(),
            events: lacking,
        })
    }

    #[must_use]
    pub fn parse(name: &str) -> Option<DisturbKind> {
        DisturbKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }

    /// The name of this kind's child thread. It is unique among the machine's threads, because it ends with digits of
    /// the process id, and fits into the kernel's 15 bytes.
    #[must_use]
    pub(super) fn thread_name(self, pid: u32) -> String {
        let short = match self {
            DisturbKind::Membarrier => "mb",
            DisturbKind::Writeback => "wb",
            other => other.as_str(),
        };
        format!("js-{short}-{:04x}", pid & 0xffff)
    }
}

impl fmt::Display for DisturbKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_has_no_event_for_is_not_named_there() {
        let linux_6_1 = |event: &str| !event.starts_with("csd/");
        let why = DisturbKind::Membarrier
            .cannot_be_named(linux_6_1)
            .unwrap()
            .to_string();
        assert!(
            why.contains("no event that says who sent a function call"),
            "{why}"
        );
        assert!(why.contains("csd:csd_queue_cpu"), "{why}");
        for kind in DisturbKind::ALL {
            assert_eq!(kind.cannot_be_named(|_| true), None, "{kind}");
            assert_eq!(
                kind.cannot_be_named(linux_6_1).is_some(),
                kind == DisturbKind::Membarrier,
                "{kind}"
            );
        }
    }

    #[test]
    fn names_come_back_and_fit_the_kernel() {
        for kind in DisturbKind::ALL {
            assert_eq!(DisturbKind::parse(kind.as_str()), Some(kind));
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
            assert!(kind.thread_name(u32::MAX).len() <= 15);
        }
        assert_eq!(DisturbKind::parse("earthquake"), None);
    }
}
