//! Who did what a record tells of: a thread, or what interrupted it.

use serde::{Deserialize, Serialize};

/// What a CPU was doing when it wrote a record.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionContext {
    /// It ran the thread that the record names.
    #[default]
    Thread,
    /// It ran softirqs on top of that thread. The thread may have raised them itself, as who sends to the
    /// loopback device does, or an interrupt may have: the record does not say.
    Softirq,
    /// It was in a hardware interrupt, with which the thread beneath has nothing to do.
    Interrupt,
    /// It was in a non-maskable interrupt, likewise.
    Nmi,
    /// What a newer version wrote.
    #[serde(other)]
    Unknown,
}

impl ExecutionContext {
    /// All that are known.
    pub const ALL: [ExecutionContext; 4] = [
        ExecutionContext::Thread,
        ExecutionContext::Softirq,
        ExecutionContext::Interrupt,
        ExecutionContext::Nmi,
    ];

    /// From a record's `common_flags`: bit 3 stands for a hardware interrupt, bit 4 for softirqs being
    /// served, bit 6 for an NMI (`trace_flag_type` in Linux's `trace_events.h`).
    #[must_use]
    pub fn from_flags(flags: u8) -> ExecutionContext {
        match flags {
            nmi if nmi & 1 << 6 != 0 => ExecutionContext::Nmi,
            interrupt if interrupt & 1 << 3 != 0 => ExecutionContext::Interrupt,
            softirq if softirq & 1 << 4 != 0 => ExecutionContext::Softirq,
            _ => ExecutionContext::Thread,
        }
    }

    /// The word for it in files and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ExecutionContext::Thread => "thread",
            ExecutionContext::Softirq => "softirq",
            ExecutionContext::Interrupt => "interrupt",
            ExecutionContext::Nmi => "nmi",
            ExecutionContext::Unknown => "unknown",
        }
    }

    /// Reads [`ExecutionContext::as_str`].
    #[must_use]
    pub fn parse(word: &str) -> Option<ExecutionContext> {
        ExecutionContext::ALL
            .into_iter()
            .find(|context| context.as_str() == word)
    }

    /// Whether the thread may have had a part in it.
    #[must_use]
    pub fn may_involve_thread(self) -> bool {
        matches!(self, ExecutionContext::Thread | ExecutionContext::Softirq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_context_counts() {
        // As a 6.18 kernel sets them: need-resched (bit 2) and disabled interrupts (bit 0) say nothing here.
        let expected = [
            (0x00, ExecutionContext::Thread),
            (0x05, ExecutionContext::Thread),
            (0x10, ExecutionContext::Softirq),
            (0x19, ExecutionContext::Interrupt),
            (0x49, ExecutionContext::Nmi),
        ];
        for (flags, context) in expected {
            assert_eq!(ExecutionContext::from_flags(flags), context, "{flags:#x}");
            assert_eq!(ExecutionContext::parse(context.as_str()), Some(context));
        }
        assert_eq!(ExecutionContext::parse("fiber"), None);
    }
}
