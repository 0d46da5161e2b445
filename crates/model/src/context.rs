//! The context of a record: a thread, or an interruption of one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a CPU was doing when it wrote a record.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionContext {
    /// The thread that the record names.
    #[default]
    Thread,
    /// Softirqs on top of that thread. The thread may have raised them itself, for example by sending to the loopback
    /// device, or an interrupt may have: the record does not tell.
    Softirq,
    /// A hardware interrupt, which is unrelated to the interrupted thread.
    Interrupt,
    /// A non-maskable interrupt, also unrelated to the thread.
    Nmi,
    /// Written by a newer version.
    #[serde(other)]
    Unknown,
}

impl ExecutionContext {
    pub const ALL: [ExecutionContext; 4] = [
        ExecutionContext::Thread,
        ExecutionContext::Softirq,
        ExecutionContext::Interrupt,
        ExecutionContext::Nmi,
    ];

    /// Decodes a record's `common_flags`: bit 3 means a hardware interrupt, bit 4 that softirqs are being served, bit 6
    /// an NMI (`trace_flag_type` in Linux's `trace_events.h`).
    #[must_use]
    pub fn from_flags(flags: u8) -> ExecutionContext {
        match flags {
            nmi if nmi & 1 << 6 != 0 => ExecutionContext::Nmi,
            interrupt if interrupt & 1 << 3 != 0 => ExecutionContext::Interrupt,
            softirq if softirq & 1 << 4 != 0 => ExecutionContext::Softirq,
            _ => ExecutionContext::Thread,
        }
    }

    /// Its word in files and JSON.
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

    /// Parses [`ExecutionContext::as_str`].
    #[must_use]
    pub fn parse(word: &str) -> Option<ExecutionContext> {
        ExecutionContext::ALL
            .into_iter()
            .find(|context| context.as_str() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_context_counts() {
        // Flags from a 6.18 kernel: need-resched (bit 2) and disabled interrupts (bit 0) do not matter here.
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
