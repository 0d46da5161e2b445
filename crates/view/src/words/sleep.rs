//! Words for what sleeping threads wait for.

use jitterscope_model::{BlockReason, BlockedOn, NoReason};

/// What a thread waits for, as part of a sentence.
pub(crate) fn blocked_on(row: &BlockedOn) -> String {
    match (&row.reason, &row.unknown_because, &row.function) {
        (BlockReason::NotRecorded, Some(why), _) => format!("not known ({})", no_reason(why)),
        (BlockReason::Function, _, Some(name)) => format!("kernel function {name}"),
        (reason, ..) => reason_name(reason).to_owned(),
    }
}

/// The kernel function that shows the reason, or why the reason is not known.
pub(crate) fn shown_by(row: &BlockedOn) -> &str {
    match (&row.function, &row.unknown_because) {
        (Some(name), _) => name,
        (None, Some(why)) => no_reason(why),
        (None, None) => "several",
    }
}

/// A reason in a table.
pub(crate) fn reason_name(of: &BlockReason) -> &str {
    match of {
        BlockReason::Lock => "a lock",
        BlockReason::KernelLock => "a kernel lock",
        BlockReason::FileLock => "a file lock",
        BlockReason::Disk => "a disk",
        BlockReason::WriteBack => "write-back",
        BlockReason::PageLock => "a locked page",
        BlockReason::FileFault => "a mapped page",
        BlockReason::MemoryFault => "a memory page",
        BlockReason::Reclaim => "reclaim",
        BlockReason::Network => "a socket",
        BlockReason::Pipe => "a pipe",
        BlockReason::Poll => "poll",
        BlockReason::AsyncIo => "async I/O",
        BlockReason::Event => "an event",
        BlockReason::Timer => "a timer",
        BlockReason::Child => "a child",
        BlockReason::Signal => "a signal",
        BlockReason::Terminal => "a terminal",
        BlockReason::Rcu => "RCU",
        BlockReason::VirtualCpu => "idle guest",
        BlockReason::Idle => "no work",
        BlockReason::Function => "other",
        BlockReason::NotRecorded => "not known",
        BlockReason::Other(word) => word,
    }
}

/// Why it is not known.
fn no_reason(of: &NoReason) -> &str {
    match of {
        NoReason::Off => "no stacks were recorded",
        NoReason::Before => "it slept before",
        NoReason::Lost => "no stack of it",
        NoReason::NoNames => "no function names",
        NoReason::Other(word) => word,
    }
}
