//! Words for what sleeping threads wait for.

use jitterscope_model::{BlockReason, BlockedOn, NoReason};

/// What a thread waits for, as the subject of a row.
pub(crate) fn blocked_on(row: &BlockedOn) -> String {
    match (&row.reason, &row.unknown_because) {
        (BlockReason::NotRecorded, Some(why)) => format!("not known: {}", no_reason(why)),
        (BlockReason::Function, _) => match &row.function {
            Some(name) => format!("the kernel function {name}"),
            None => "other kernel functions".into(),
        },
        (reason, _) => reason_name(reason).to_owned(),
    }
}

fn reason_name(of: &BlockReason) -> &str {
    match of {
        BlockReason::Lock => "a lock",
        BlockReason::KernelLock => "a lock of the kernel",
        BlockReason::FileLock => "a lock on a file",
        BlockReason::Disk => "a disk",
        BlockReason::WriteBack => "write-back of dirty pages",
        BlockReason::PageLock => "a locked page",
        BlockReason::FileFault => "a page of a mapped file",
        BlockReason::MemoryFault => "a page of memory",
        BlockReason::Reclaim => "reclaim of memory",
        BlockReason::Network => "a socket",
        BlockReason::Pipe => "a pipe",
        BlockReason::Poll => "poll, select or epoll",
        BlockReason::AsyncIo => "asynchronous operations",
        BlockReason::Event => "an event descriptor",
        BlockReason::Timer => "a timer",
        BlockReason::Child => "a child process",
        BlockReason::Signal => "a signal",
        BlockReason::Terminal => "a terminal",
        BlockReason::Rcu => "a grace period of RCU",
        BlockReason::VirtualCpu => "its idle virtual CPU",
        BlockReason::Idle => "work for a kernel thread",
        BlockReason::Function => "a kernel function",
        BlockReason::NotRecorded => "not known",
        BlockReason::Other(word) => word,
    }
}

/// Why it is not known, as part of a sentence.
fn no_reason(of: &NoReason) -> &str {
    match of {
        NoReason::Off => "no stacks were recorded",
        NoReason::Before => "it slept before it was followed",
        NoReason::Lost => "the stack has no record",
        NoReason::NoNames => "the kernel hides the names of functions",
        NoReason::Other(word) => word,
    }
}
